// The same routed experts stored in different ways. A family's releases use one of them (native_form), but newer tools
// save others, and we write all of them:
//
//   kPerExpert    LAYER.mlp.experts.E.gate_proj.weight (I, H), … up_proj, down_proj (H, I); with .bias where the model
//                 has biases
//   kStacked      LAYER.mlp.experts.gate_proj (E, I, H), up_proj, down_proj (E, H, I); biases gate_proj_bias (E, I) …
//   kGateThenUp   LAYER.mlp.experts.gate_up_proj (E, 2I, H), rows of gate then rows of up; down_proj (E, H, I)
//   kInterleaved  the same names, row 2i gate i and row 2i + 1 up i
//
// Dense files of some families (gpt-oss, Llama-4) hold the stacks of their native form transposed, (E, H, 2I) and
// (E, I, H): ExpertNaming::transposed, ParamSpec::transposed_when_dense.
//
// H is the experts' input width (ModelSpec::expert_width), whatever the model's hidden size. Module names are the
// family's (w1, w3, w2 under block_sparse_moe …); fused names are the same for all but those that name their own.
#pragma once

#include <cstdint>
#include <string>

#include "nibble/models/family.h"

namespace nibble {

enum class ExpertStorage : uint8_t { kPerExpert, kStacked, kGateThenUp, kInterleaved };

ExpertStorage native_form(const ModelSpec& spec);

// The parameters of one layer's experts in a form, biases included where the model has them. Role kRoutedExpert (kBias,
// kMtp), layer, expert, projection and fusion are set.
void visit_experts(const ModelSpec& spec, int32_t layer, ExpertStorage form, const ParamVisitor& visit);

// Names of one expert's matrices; bias names empty if the model has no expert biases.
struct ExpertNames {
  std::string gate, up, down;                 // with ".weight"
  std::string gate_bias, up_bias, down_bias;  // with ".bias"
};
ExpertNames per_expert_names(const ModelSpec& spec, int32_t layer, uint64_t expert);
// The stack's name: kGateUp or kDown (fused forms), kGate, kUp or kDown (stacked).
std::string fused_name(const ModelSpec& spec, int32_t layer, Projection projection);
std::string fused_bias_name(const ModelSpec& spec, int32_t layer, Projection projection);

}  // namespace nibble
