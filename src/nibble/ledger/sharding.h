// Which part of a weight one GPU holds under a layout. Tensor parallelism cuts gate, up, queries, keys and values along
// their outputs, down and the output projection along K; the vocabulary along its rows. What belongs to no head and no
// expert (latent bottlenecks, indexers, routers, norms) is held by every GPU.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nibble/ledger/layout.h"
#include "nibble/ledger/weight_groups.h"

namespace nibble {

enum class CutAxis : uint8_t { kNone, kRows, kCols };

struct Cut {
  CutAxis axis = CutAxis::kNone;
  uint64_t width = 0;  // elements along the axis; of a fused gate and up, of one of them
  uint64_t parts = 1;
};

// How the matrices of a group are cut, experts apart from their dealing out over ep.
Cut cut_of(const WeightGroup& group, const Layout& layout);

// The axis alone: what any number of parts would cut.
CutAxis cut_axis(const ParamSpec& param);

// Key/value heads are copied where there are fewer of them than parts: how many different parts there are.
uint64_t key_value_parts(uint64_t kv_heads, uint64_t tp);

// Bytes of one of the group's weights on the fullest GPU of the stage that has it, uneven cuts rounded up.
uint64_t rank_bytes(const WeightGroup& group, const Layout& layout);

// Layers [first, second) of a stage. Stage 0 has the embedding, the last one head, final norm and MTP layers; it needs
// an embedding of its own for a tied head, and for MTP layers that draft.
std::pair<uint64_t, uint64_t> stage_layers(uint64_t layers, uint64_t pp, uint64_t stage);
// Numbers of parts that cut `width` into whole blocks, ascending, at most 16 of them.
std::vector<uint64_t> legal_parts(uint64_t width, uint64_t block);

}  // namespace nibble
