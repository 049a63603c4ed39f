// A checkpoint seen as a model: its weights matched with its family's parameters. Everything later goes through this:
// inspect, verify and quantize ask for roles here.
//
// Rules reported:
//   unmatched-tensor   a tensor that is no parameter of the family, with the nearest parameter's name; an error if
//                      parameters are empty at the same time, else a note (the tensor is copied)
//   empty-parameter    a parameter without a tensor
//   shape-mismatch     a tensor whose shape contradicts the configuration, with both shapes
//   tie-mismatch       a head that the configuration ties, or an untied one that is missing
//   other-part         (note) tensors of a part that is not the text model: a vision tower
//   unknown-family     (note) nothing is known about this model; all roles are unknown
//   bad-config         a configuration that the family cannot read
//
// Tensors of one kind (names that differ in numbers only) share one finding, with their count.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nibble/base/finding.h"
#include "nibble/checkpoint/checkpoint.h"
#include "nibble/checkpoint/weight_table.h"
#include "nibble/models/expert_forms.h"
#include "nibble/models/family.h"
#include "nibble/models/model_spec.h"

namespace nibble {

struct Model {
  const Family* family = nullptr;  // null: unknown
  bool from_gguf = false;
  std::string family_name;  // the family's, or what the configuration calls itself
  ModelSpec spec;           // empty if the family is unknown or could not read the configuration
  WeightTable table;        // names as in a Hugging Face checkpoint, GGUF's mapped; row_order set
  // One per table.weights(): the parameter it is; role kUnknown and the weight's own name and shape if none.
  std::vector<ParamSpec> params;
};

// Groups, finds the family, matches. Routed experts are found in every form of expert_forms.h, each layer by itself;
// the family decides how a dense stack lies, never its shape. Biases of known modules, KV scales, rotary tables and
// tensors of MTP layers that the family does not list have their roles (kBias, kAttention, kMtp) and are no errors.
Model load_model(const Checkpoint& checkpoint, Findings* findings);

// Matrices that must share one second-level scale (gate and up of one expert; q, k, v): equal key, or "" for none.
// Their names differ in the last module only; `rank` is the number of dimensions.
std::string fusion_key(Projection projection, std::string_view name, size_t rank);

}  // namespace nibble
