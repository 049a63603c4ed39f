// The weights of a model while it is trained: float32 master values in the form that the passes multiply, and where
// each published parameter lies in them.
//
// Matrices that read the same input lie in one tensor, since they are multiplied together and, in formats with a second
// level, share its scale: rows of q, k and v; rows of gate, then of up, of every expert.
//
//   LAYER.self_attn.qkv_proj (q + k + v, H)      LAYER.mlp.experts.gate_up (E, 2I, H)     .bias behind both: (…, rows)
//   LAYER.mlp.gate_up, LAYER.mlp.shared.gate_up  (2I, H)                                  LAYER.….down (…, H, I)
//
// Everything else has its published name and shape. All published forms of experts (models/expert_forms.h) go in; the
// family's own comes out.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "nibble/models/family.h"
#include "nibble/models/model.h"

namespace nibble {

struct TrainedTensor {
  std::string name;
  Role role = Role::kUnknown;
  int32_t layer = -1;
  std::vector<uint64_t> shape;
  uint64_t slices = 1, rows = 1, cols = 1;  // their product is the shape's; a vector has one column
  std::vector<uint64_t> parts;  // rows of the matrices that lie in a slice; more than one where some share it
  std::vector<float> values;

  bool is_matrix() const { return cols > 1; }
  bool is_stack() const { return shape.size() == 3; }
};

// Where a published parameter lies.
struct ParamPlace {
  size_t tensor = 0;
  uint64_t slice = 0, slices = 1;  // slices from `slice` on
  uint64_t row = 0;                // of the parameter's first row …
  uint64_t rows = 0;
  bool interleaved = false;  // … and its row 2i goes to i, 2i + 1 to rows / 2 + i

  uint64_t row_of(uint64_t r) const { return row + (interleaved ? r % 2 * (rows / 2) + r / 2 : r); }
};

class TrainedTensors {
 public:
  // Zeros. Error, with what stands in the way, for a model that cannot be trained (refuse_untrainable).
  TrainedTensors(const Family& family, const ModelSpec& spec);

  const Family& family() const { return *family_; }
  const ModelSpec& spec() const { return spec_; }
  std::vector<TrainedTensor>& list() { return list_; }
  const std::vector<TrainedTensor>& list() const { return list_; }
  // Index into list(), or -1.
  int64_t find(std::string_view name) const;
  const TrainedTensor& at(std::string_view name) const;  // must be there
  uint64_t parameters() const;                           // elements of all

  // Every parameter that the family's own releases have, tied heads aside.
  const std::vector<ParamSpec>& params() const { return params_; }
  bool holds(const ParamSpec& param) const;        // false: no parameter of the model, a rotary table for one
  ParamPlace place(const ParamSpec& param) const;  // of one in any form that it holds; Error if it is too large

 private:
  size_t make_room(const ParamSpec& param);

  const Family* family_;
  ModelSpec spec_;
  std::vector<ParamSpec> params_;
  std::vector<TrainedTensor> list_;
  std::map<std::string, size_t, std::less<>> by_name_;
};

// Error unless the trainable decoder computes what the engine computes for this model: grouped-query attention with or
// without norms over heads, sinks and windows; softmax routers of both kinds; SwiGLU, plain or clamped.
void refuse_untrainable(const ModelSpec& spec, const std::string& source);

// Weights of a model that begins from nothing, drawn by counter from the seed: normal, of deviation 1 / sqrt(inputs),
// of projections that write into the residual stream 1 / sqrt(inputs · 2 · layers), of an embedding 1 (of a tied one as
// of any matrix). Norms are 1, biases and sinks 0.
void initialize(TrainedTensors* tensors, uint64_t seed);

}  // namespace nibble
