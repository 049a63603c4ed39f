// The `quantization_config` of compressed-tensors (FORMATS.md §4.1), complete: every argument is spelled out, so that a
// reader's defaults do not matter. Only keys that the reference knows stand inside a scheme: others are an error there.
#pragma once

#include "nibble/base/json.h"
#include "nibble/checkpoint/conventions/config_writer.h"

namespace nibble {

// The library's name for how a format is stored ("pack-quantized"), or null if it has none.
const char* compressed_tensors_format(const Format& format);
Json compressed_tensors_config(const ConfigRequest& request);

}  // namespace nibble
