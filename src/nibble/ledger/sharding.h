// Which part of a weight one GPU holds under a layout. Tensor parallelism cuts gate, up, queries, keys and values along
// their outputs, down and the output projection along K; the vocabulary along its rows. What belongs to no head and no
// expert (latent bottlenecks, indexers, routers, norms) is held by every GPU.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "nibble/ledger/key_value_rows.h"
#include "nibble/ledger/layout.h"
#include "nibble/ledger/weight_groups.h"

namespace nibble {

enum class CutAxis : uint8_t { kNone, kRows, kCols };

struct Cut {
  CutAxis axis = CutAxis::kNone;
  uint64_t width = 0;  // elements along the axis; of a fused gate and up, of one of them
  uint64_t parts = 1;
  uint64_t kv_heads = 0;  // of rows of keys or values: their heads
};

// Queries, keys and values that stand in one matrix are cut one by one; any other weight in one way or none.
class Cuts {
 public:
  void add(const Cut& cut) { cuts_[count_++] = cut; }
  const Cut* begin() const { return cuts_.data(); }
  const Cut* end() const { return cuts_.data() + count_; }

 private:
  std::array<Cut, 3> cuts_;
  size_t count_ = 0;
};

// How one matrix (rows, cols) of a parameter is cut over so many GPUs.
Cuts cuts_of(const ParamSpec& param, const KeyValueRows& kv, uint64_t rows, uint64_t cols, uint64_t parts);

// How the matrices of a group are cut, experts apart from their dealing out over ep.
Cuts cuts_of(const WeightGroup& group, const Layout& layout);

// The axis alone: what any number of parts would cut.
CutAxis cut_axis(const ParamSpec& param);

// Bytes of one of the group's weights on the fullest GPU of the stage that has it, uneven cuts rounded up.
uint64_t rank_bytes(const WeightGroup& group, const Layout& layout);

// Layers [first, second) of a stage. Stage 0 has the embedding, the last one head, final norm and MTP layers; it needs
// an embedding of its own for a tied head, and for MTP layers that draft.
std::pair<uint64_t, uint64_t> stage_layers(uint64_t layers, uint64_t pp, uint64_t stage);
// Numbers of parts that cut `width` into whole blocks, ascending, at most 16 of them.
std::vector<uint64_t> legal_parts(uint64_t width, uint64_t block);

}  // namespace nibble
