// What the conventions' configurations have in common.
#pragma once

#include <string>
#include <vector>

#include "nibble/base/json.h"
#include "nibble/checkpoint/convention.h"

namespace nibble {

// Takes every carrier of quantization settings out of a config.json: top level, sub-configurations (text_config …), and
// keys that only make sense with them. A stale one left beside a fresh one makes readers choose between two truths.
void remove_quantization(Json* config);
// remove_quantization, then the settings at top level, where every reader looks first.
void replace_quantization(Json* config, Json settings);

}  // namespace nibble
