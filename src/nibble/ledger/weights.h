// A model's weights with the format that holds each: the one list from which memory, traffic and operations are
// counted. Experts of a layer are one entry (stacked_inventory.h).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "nibble/checkpoint/checkpoint.h"
#include "nibble/models/family.h"
#include "nibble/models/model.h"
#include "nibble/models/stacked_inventory.h"
#include "nibble/numerics/format.h"

namespace nibble {

struct WeightItem {
  ParamSpec param;
  Format format;
  uint64_t bytes = 0;     // in the file: codes, scales, zero points, second levels; of all experts
  uint64_t elements = 0;  // of all experts

  bool is_stack() const { return is_expert_stack(param); }
  uint64_t experts() const { return is_stack() ? param.shape[0] : 1; }
  // Matrices in one tensor: routed experts, or shared ones that a family stacks.
  uint64_t matrices() const { return is_matrix_stack() ? param.shape[0] : 1; }
  bool is_matrix_stack() const;
  // A second embedding or head: a tied head that the file stores, those of MTP layers. Engines point such layers at the
  // model's own, so that it takes a file's bytes but is neither held nor read on a GPU.
  bool is_copy() const { return !param.counted && (param.role == Role::kHead || param.role == Role::kMtp); }
  // Of one matrix; a vector is one row.
  uint64_t rows() const;
  uint64_t cols() const;
};

// The format of a parameter; nullopt: the model's own 16 or 32 bits.
using FormatOf = std::function<std::optional<Format>(const ParamSpec&)>;

// There is no head but the embedding, or copies of it.
bool ties_head(const std::vector<WeightItem>& items);

// Bytes by the formats' arithmetic. Parameters that no release quantizes (policy.h: Keep16::kAlways) stay in the
// model's type whatever `format_of` says; copies of embedding and head are left out, tied heads too. Error naming the
// parameter if a shape and its format do not go together.
std::vector<WeightItem> weigh(const ModelSpec& spec, std::vector<ParamSpec> params, const FormatOf& format_of);

// Bytes as the headers of a checkpoint have them: their sum is the sum of all tensors there, encoders and index tables
// (role unknown) included.
std::vector<WeightItem> weigh_checkpoint(const Checkpoint& checkpoint, const Model& model);

}  // namespace nibble
