// What a checkpoint's configuration says about its quantization, wherever it stands (FORMATS.md trap 16): top level of
// config.json, text_config, hf_quant_config.json, quantize_config.json. Hints only: the stored tensors decide; hints
// settle what shapes cannot (block size, GPTQ's version) and are checked against the tensors by verify.
//
// Carriers that agree complete each other. Where they disagree, config.json is kept and the other one named; only for
// ModelOpt does hf_quant_config.json come first, since its older exports say nothing or less in config.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nibble/checkpoint/checkpoint.h"

namespace nibble {

// One group of compressed-tensors (and ModelOpt's in the same form), as written.
struct QuantGroup {
  std::string name, format;  // `format`: how this group is stored, where it differs from the others
  std::string type;          // "int", "float"
  std::string strategy, scale_dtype;
  uint64_t bits = 0;
  std::optional<int64_t> group_size;  // -1: whole rows
  uint64_t block_rows = 0, block_cols = 0;
  std::optional<bool> symmetric, desc_act;
  std::vector<std::string> targets;  // classes and names of modules
};

// ModelOpt: one layer with an algorithm of its own.
struct QuantLayer {
  std::string name, algorithm;
  std::optional<int64_t> group_size;
};

struct QuantHints {
  std::string source;     // path of the file that the hints were read from; "" if there are none
  std::string method;     // quant_method, lower case: "compressed-tensors", "modelopt", "gptq", "awq" …; where a file
                          // leaves it out, what its other keys show; "" if nothing does
  std::string algorithm;  // ModelOpt's quant_algo in upper case, compressed-tensors' format or preset
  std::string checkpoint_format;  // GPTQ: "gptq" (also if missing), "gptq_v2" …; AWQ: version in lower case
  std::string expert_dtype;       // DeepSeek-V4
  // From the groups of compressed-tensors only what all groups share.
  uint64_t bits = 0;
  std::optional<int64_t> group_size;  // -1: whole rows
  uint64_t block_rows = 0, block_cols = 0;
  std::optional<bool> symmetric, desc_act;
  std::vector<std::string> excluded;                        // ignore lists as written, whichever key
  std::string other_source, other_method, other_algorithm;  // a second carrier that disagrees (C57)

  // What only those need who go by the configuration (declared_formats.h). Nothing here is refused: a value of a wrong
  // type stands as its JSON text, which nobody knows.
  std::string element_format, scale_format;  // `fmt`, `scale_fmt`
  std::string store_dtype;                   // of routed experts
  std::string expert_algorithm;              // ModelOpt's moe_quant_algo in upper case
  std::vector<QuantGroup> groups;            // those that quantize weights
  std::vector<QuantLayer> layers;            // ModelOpt's quantized_layers
};

// Refuses malformed values (negative group sizes other than -1, block sizes of 0, wrong types) as findings of the rule
// bad-config; what is malformed counts as absent.
QuantHints read_quant_hints(const Checkpoint& checkpoint, Findings* findings);
// The same from the documents (null where there is none) and their paths.
QuantHints read_quant_hints(const Json& config, const std::string& config_path, const Json& side_config,
                            const std::string& side_path, Findings* findings);

}  // namespace nibble
