// A checkpoint seen as a model: its weights matched with its family's parameters. Everything later goes through this:
// inspect, verify and quantize ask for roles here.
//
// Rules reported: unmatched-tensor (with the nearest parameter name), empty-parameter, shape-mismatch, tie-mismatch,
// unknown-family (note), bad-config.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nibble/base/finding.h"
#include "nibble/checkpoint/checkpoint.h"
#include "nibble/checkpoint/weight_table.h"
#include "nibble/models/family.h"
#include "nibble/models/model_spec.h"

namespace nibble {

struct Model {
  const Family* family = nullptr;  // null: unknown
  bool from_gguf = false;
  std::string family_name;  // the family's, or what the configuration calls itself
  ModelSpec spec;           // empty if the family is unknown
  WeightTable table;        // names as in a Hugging Face checkpoint, GGUF's mapped; row_order set
  // One per table.weights(): the parameter it is; role kUnknown and the weight's own name and shape if none.
  std::vector<ParamSpec> params;
};

// Groups, finds the family, matches. Biases of quantized modules, KV scales, rotary tables and MTP tensors that the
// family does not list keep their own roles (kBias, kAttention, kMtp) and are not errors; anything else is
// `unmatched-tensor`: an error if parameters of the family are empty at the same time (C53), else a note (C27).
Model load_model(const Checkpoint& checkpoint, Findings* findings);

// Matrices that must share one second-level scale (gate and up of one expert; q, k, v): equal key, or "" for none.
std::string fusion_key(const ParamSpec& param);

// The same parameter in the other expert form: fused (E, 2I, H) gate_up <-> per-expert gate and up, names as in the
// family's (or the field's) convention. Used when source and target conventions differ in form.
struct ExpertNames {
  std::string gate, up, down;  // per expert, with ".weight"
};
ExpertNames per_expert_names(const ModelSpec& spec, int32_t layer, uint64_t expert);
std::string fused_name(const ModelSpec& spec, int32_t layer, Projection projection);  // kGateUp or kDown

}  // namespace nibble
