#include "nibble/ledger/sharding.h"

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

uint64_t key_value_parts(uint64_t kv_heads, uint64_t tp) {
  return kv_heads == 0 || tp <= kv_heads || tp % kv_heads != 0 ? tp : kv_heads;
}

Cut cut_of(const WeightGroup& group, const Layout& layout) {
  const WeightItem& item = group.item;
  Cut cut;
  cut.axis = cut_axis(item.param);
  if (cut.axis == CutAxis::kNone) return cut;
  cut.parts = item.is_stack()       ? layout.expert_parts()
              : group.kv_heads != 0 ? key_value_parts(group.kv_heads, layout.tp)
                                    : layout.tp;
  const bool pair = item.param.projection == Projection::kGateUp;
  cut.width = cut.axis == CutAxis::kCols ? item.cols() : item.rows() / (pair ? 2 : 1);
  return cut;
}

uint64_t rank_bytes(const WeightGroup& group, const Layout& layout) {
  const WeightItem& item = group.item;
  const Cut cut = cut_of(group, layout);
  uint64_t bytes = item.bytes;
  if (item.is_stack()) bytes = share(bytes, ceil_div(item.experts(), layout.ep), item.experts());
  if (cut.width == 0) return bytes;
  return share(bytes, ceil_div(cut.width, cut.parts), cut.width);
}

std::pair<uint64_t, uint64_t> stage_layers(uint64_t layers, uint64_t pp, uint64_t stage) {
  return {layers * stage / pp, layers * (stage + 1) / pp};
}

std::vector<uint64_t> legal_parts(uint64_t width, uint64_t block) {
  constexpr size_t kListed = 16;
  std::vector<uint64_t> legal = {1};
  for (uint64_t parts = 2; block != 0 && parts <= width / block && legal.size() < kListed; ++parts) {
    if (width % parts == 0 && width / parts % block == 0) legal.push_back(parts);
  }
  return legal;
}

}  // namespace nibble
