#include "nibble/ledger/sharding.h"

#include <algorithm>

#include "nibble/base/checked_math.h"

namespace nibble {
namespace {

// Bytes · local / whole, rounded up; widths are below 2^31, so that their product fits.
uint64_t share(uint64_t bytes, uint64_t local, uint64_t whole) {
  return bytes / whole * local + ceil_div(bytes % whole * local, whole);
}

}  // namespace

CutAxis cut_axis(const ParamSpec& param) {
  if (param.role == Role::kEmbedding || param.role == Role::kHead) return CutAxis::kRows;
  switch (param.projection) {
    case Projection::kGate:
    case Projection::kUp:
    case Projection::kGateUp:
    case Projection::kQ:
    case Projection::kK:
    case Projection::kV:
    case Projection::kQkv:
    case Projection::kQb:
    case Projection::kKvb:
    case Projection::kHeads: return CutAxis::kRows;
    case Projection::kDown:
    case Projection::kO: return CutAxis::kCols;
    default: return CutAxis::kNone;
  }
}

Cuts cuts_of(const ParamSpec& param, const KeyValueRows& kv, uint64_t rows, uint64_t cols, uint64_t parts) {
  Cuts cuts;
  const CutAxis axis = cut_axis(param);
  if (axis == CutAxis::kCols) cuts.add({axis, cols, parts});
  if (axis != CutAxis::kRows) return cuts;
  const uint64_t others = rows - std::min(rows, kv.keys + kv.values);
  const uint64_t kv_parts = key_value_parts(kv.heads, parts);
  if (others != 0) cuts.add({axis, param.projection == Projection::kGateUp ? others / 2 : others, parts});
  if (kv.keys != 0) cuts.add({axis, kv.keys, kv_parts, kv.heads});
  if (kv.values != 0) cuts.add({axis, kv.values, kv_parts, kv.heads});
  return cuts;
}

Cuts cuts_of(const WeightGroup& group, const Layout& layout) {
  const WeightItem& item = group.item;
  return cuts_of(item.param, group.kv, item.rows(), item.cols(), item.is_stack() ? layout.expert_parts() : layout.tp);
}

uint64_t rank_bytes(const WeightGroup& group, const Layout& layout) {
  const WeightItem& item = group.item;
  uint64_t bytes = item.bytes;
  if (item.is_stack()) bytes = share(bytes, ceil_div(item.experts(), layout.ep), item.experts());
  uint64_t local = 0;
  uint64_t whole = 0;
  for (const Cut& cut : cuts_of(group, layout)) {
    local += ceil_div(cut.width, cut.parts);
    whole += cut.width;
  }
  return whole == 0 ? bytes : share(bytes, local, whole);
}

std::pair<uint64_t, uint64_t> stage_layers(uint64_t layers, uint64_t pp, uint64_t stage) {
  return {layers * stage / pp, layers * (stage + 1) / pp};
}

std::vector<uint64_t> legal_parts(uint64_t width, uint64_t block) {
  constexpr size_t kListed = 16;
  if (width == 0 || block == 0 || width % block != 0) return {1};
  // Divisors of the number of blocks, from both ends.
  const uint64_t blocks = width / block;
  std::vector<uint64_t> legal, upper;
  for (uint64_t parts = 1; parts <= blocks / parts; ++parts) {
    if (blocks % parts != 0) continue;
    legal.push_back(parts);
    if (blocks / parts != parts) upper.push_back(blocks / parts);
  }
  legal.insert(legal.end(), upper.rbegin(), upper.rend());
  legal.resize(std::min(legal.size(), kListed));
  return legal;
}

}  // namespace nibble
