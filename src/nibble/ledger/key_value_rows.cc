#include "nibble/ledger/key_value_rows.h"

namespace nibble {
namespace {

// MTP layers attend over everything, or over windows of their own.
LayerSpec layer_of(const ModelSpec& spec, int32_t index) {
  const auto layer = static_cast<size_t>(index);
  if (index >= 0 && layer < spec.layers.size()) return spec.layers[layer];
  LayerSpec drafting;
  if (index >= 0 && layer - spec.layers.size() < spec.mtp_windows.size())
    drafting.sliding_window = spec.mtp_windows[layer - spec.layers.size()];
  return drafting;
}

KeyValueRows linear_rows(const LinearAttentionSpec& linear, Projection projection, uint64_t rows) {
  if (projection == Projection::kK) return {linear.key_heads, rows, 0};
  if (projection == Projection::kV) return {linear.heads, 0, rows};
  // Queries, keys and values, with gates behind them or not.
  const bool whole = projection == Projection::kQkv || projection == Projection::kHeads;
  if (!whole || linear.key_heads != 1 || rows < linear.conv_channels()) return {};
  return {1, 2 * linear.key_dim, 0};
}

}  // namespace

KeyValueRows key_value_rows(const ModelSpec& spec, const ParamSpec& param) {
  if (param.shape.size() != 2) return {};
  const uint64_t rows = param.shape[0];
  const LayerSpec layer = layer_of(spec, param.layer);
  if (layer.attention == AttentionKind::kLinear) return linear_rows(spec.linear, param.projection, rows);
  const AttentionShape shape = spec.attention_shape(layer);
  if (param.projection == Projection::kK) return {shape.kv_heads, rows, 0};
  if (param.projection == Projection::kV) return {shape.kv_heads, 0, rows};
  if (param.projection != Projection::kQkv) return {};
  const KeyValueRows fused{shape.kv_heads, shape.kv_heads * shape.head_dim, shape.kv_heads * shape.v_head_dim};
  return fused.keys + fused.values <= rows ? fused : KeyValueRows{};
}

uint64_t key_value_parts(uint64_t kv_heads, uint64_t tp) {
  return kv_heads == 0 || tp <= kv_heads || tp % kv_heads != 0 ? tp : kv_heads;
}

}  // namespace nibble
