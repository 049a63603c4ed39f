// What Kimi-K2.5 shares with DeepSeek-V3: its text model is one, under another prefix.
#pragma once

#include <string_view>

#include "nibble/models/families/common_config.h"

namespace nibble {

// Everything but family, prefix and the sizes that parse_decoder read.
void parse_deepseek_text(const ConfigReader& config, ModelSpec* spec);
void visit_deepseek_text(const ModelSpec& spec, const ParamVisitor& visit);

}  // namespace nibble
