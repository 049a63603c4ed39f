#include "nibble/ledger/sharding.h"

#include "nibble/base/checked_math.h"

namespace nibble {
namespace {

uint64_t attention_parts(const ModelSpec& spec, const ParamSpec& param, uint64_t tp) {
  if (param.projection != Projection::kK && param.projection != Projection::kV) return tp;
  const bool known = param.layer >= 0 && static_cast<size_t>(param.layer) < spec.layers.size();
  const uint64_t heads =
      known ? spec.attention_shape(spec.layers[static_cast<size_t>(param.layer)]).kv_heads : spec.kv_heads;
  return key_value_parts(heads, tp);
}

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
    case Projection::kKvb: return CutAxis::kRows;
    case Projection::kDown:
    case Projection::kO: return CutAxis::kCols;
    default: return CutAxis::kNone;
  }
}

uint64_t key_value_parts(uint64_t kv_heads, uint64_t tp) {
  return kv_heads == 0 || tp <= kv_heads || tp % kv_heads != 0 ? tp : kv_heads;
}

Cut cut_of(const ModelSpec& spec, const ParamSpec& param, uint64_t rows, uint64_t cols, const Layout& layout) {
  Cut cut;
  cut.axis = cut_axis(param);
  if (cut.axis == CutAxis::kNone) return cut;
  const bool expert = param.fusion != Fusion::kNone || param.expert >= 0;
  cut.parts = expert ? layout.expert_parts() : attention_parts(spec, param, layout.tp);
  cut.width = cut.axis == CutAxis::kCols ? cols : param.projection == Projection::kGateUp ? rows / 2 : rows;
  return cut;
}

uint64_t rank_bytes(const ModelSpec& spec, const WeightItem& item, const Layout& layout) {
  const Cut cut = cut_of(spec, item.param, item.rows(), item.cols(), layout);
  uint64_t bytes = item.bytes;
  if (item.is_stack()) bytes = share(bytes, ceil_div(item.experts(), layout.ep), item.experts());
  if (cut.width == 0) return bytes;
  return share(bytes, ceil_div(cut.width, cut.parts), cut.width);
}

std::pair<uint64_t, uint64_t> stage_layers(uint64_t layers, uint64_t pp, uint64_t stage) {
  return {layers * stage / pp, layers * (stage + 1) / pp};
}

uint64_t stage_of(const ModelSpec& spec, const ParamSpec& param, uint64_t pp) {
  const uint64_t layers = spec.layers.size();
  if (param.layer < 0) return param.role == Role::kEmbedding ? 0 : pp - 1;
  if (static_cast<uint64_t>(param.layer) >= layers) return pp - 1;
  // The inverse of stage_layers: the stage whose run begins last at or before the layer.
  uint64_t stage = static_cast<uint64_t>(param.layer) * pp / layers;
  while (stage + 1 < pp && stage_layers(layers, pp, stage + 1).first <= static_cast<uint64_t>(param.layer)) ++stage;
  return stage;
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
