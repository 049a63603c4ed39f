// What a checkpoint's configuration says about its quantization, wherever it stands (FORMATS.md trap 16): top level of
// config.json, text_config, hf_quant_config.json, quantize_config.json. Hints only: the stored tensors decide; hints
// settle what shapes cannot (block size, GPTQ's version) and are checked against the tensors by verify.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nibble/checkpoint/checkpoint.h"

namespace nibble {

struct QuantHints {
  std::string source;     // file the hints were read from; "" if there are none
  std::string method;     // quant_method: "compressed-tensors", "fp8", "mxfp4", "modelopt", "gptq", "awq", "mxfp8", ""
  std::string algorithm;  // ModelOpt's quant_algo, compressed-tensors' format
  std::string checkpoint_format;  // GPTQ: "gptq", "gptq_v2"; AWQ: version
  std::string expert_dtype;       // DeepSeek-V4
  uint64_t bits = 0;
  std::optional<int64_t> group_size;  // -1: whole rows
  uint64_t block_rows = 0, block_cols = 0;
  std::optional<bool> symmetric, desc_act;
  std::vector<std::string> excluded;       // ignore lists as written, whichever key
  std::string other_source, other_method;  // a second carrier that disagrees (C57)
};

// Refuses malformed values (negative group sizes other than -1, block sizes of 0, wrong types) as findings.
QuantHints read_quant_hints(const Checkpoint& checkpoint, Findings* findings);

}  // namespace nibble
