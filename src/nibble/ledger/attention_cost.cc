#include "nibble/ledger/attention_cost.h"

#include <algorithm>

namespace nibble {
namespace {

// What one layer does for a token: operations for each entry it reads, and which it reads.
struct LayerCost {
  double per_entry = 0, per_window_token = 0, per_index_key = 0, fixed = 0;
  double tokens_per_entry = 1, tokens_per_key = 1;
  double most_entries = 0, window = 0;  // 0: all, none
};

double of(uint64_t number) { return static_cast<double>(number); }

LayerCost gqa(const ModelSpec& spec, const LayerSpec& layer) {
  const AttentionShape shape = spec.attention_shape(layer);
  LayerCost cost;
  const double flops = 2 * of(shape.heads) * of(shape.head_dim + shape.v_head_dim);
  (layer.sliding_window != 0 ? cost.per_window_token : cost.per_entry) = flops;
  cost.window = of(layer.sliding_window);
  return cost;
}

LayerCost mla(const ModelSpec& spec, bool decode) {
  LayerCost cost;
  const uint64_t width = decode ? 2 * spec.kv_lora_rank + spec.qk_rope_head_dim
                                : spec.qk_nope_head_dim + spec.qk_rope_head_dim + spec.v_head_dim;
  cost.per_entry = 2 * of(spec.heads) * of(width);
  return cost;
}

LayerCost compressed(const ModelSpec& spec, const LayerSpec& layer) {
  LayerCost cost;
  const double flops = 4 * of(spec.heads) * of(spec.head_dim);
  cost.per_window_token = flops;
  cost.window = of(layer.sliding_window);
  if (layer.compress_ratio == 0) return cost;
  cost.per_entry = flops;
  cost.tokens_per_entry = of(layer.compress_ratio);
  cost.tokens_per_key = cost.tokens_per_entry;
  return cost;
}

LayerCost cost_of(const ModelSpec& spec, const LayerSpec& layer, bool decode) {
  LayerCost cost;
  switch (layer.attention) {
    case AttentionKind::kGqa: cost = gqa(spec, layer); break;
    case AttentionKind::kMla: cost = mla(spec, decode); break;
    case AttentionKind::kCompressed: cost = compressed(spec, layer); break;
    case AttentionKind::kLinear:
      cost.fixed = 6 * of(spec.linear.heads) * of(spec.linear.key_dim) * of(spec.linear.value_dim);
      break;
    case AttentionKind::kNone:
    case AttentionKind::kOther: break;
  }
  if (layer.indexer) {
    cost.per_index_key = 2 * of(spec.indexer.heads) * of(spec.indexer.head_dim);
    if (layer.compress_ratio == 0) cost.tokens_per_key = of(spec.indexer.tokens_per_key);
  }
  if (layer.indexer || layer.chosen_keys) cost.most_entries = of(spec.indexer.topk * spec.indexer.block);
  return cost;
}

AttentionFlops decode_flops(const LayerCost& cost, double tokens) {
  double entries = tokens / cost.tokens_per_entry;
  if (cost.most_entries > 0) entries = std::min(entries, cost.most_entries);
  return {cost.fixed + cost.per_entry * entries + cost.per_window_token * std::min(tokens, cost.window),
          cost.per_index_key * tokens / cost.tokens_per_key};
}

// Sum over n = 1 … tokens of min(n / step, most), as if n were continuous (most 0: no bound).
double sum_of_min(double tokens, double step, double most) {
  const double knee = most > 0 ? std::min(tokens, most * step) : tokens;
  return knee * (knee + 1) / 2 / step + (tokens - knee) * most;
}

AttentionFlops prefill_flops(const LayerCost& cost, double tokens) {
  AttentionFlops flops;
  flops.heads = cost.fixed * tokens + cost.per_entry * sum_of_min(tokens, cost.tokens_per_entry, cost.most_entries);
  if (cost.window > 0) flops.heads += cost.per_window_token * sum_of_min(tokens, 1, cost.window);
  flops.indexer = cost.per_index_key * sum_of_min(tokens, cost.tokens_per_key, 0);
  return flops;
}

AttentionFlops sum_of_layers(const ModelSpec& spec, bool decode, double tokens) {
  AttentionFlops sum;
  for (const LayerSpec& layer : spec.layers) {
    const LayerCost cost = cost_of(spec, layer, decode);
    const AttentionFlops flops = decode ? decode_flops(cost, tokens) : prefill_flops(cost, tokens);
    sum.heads += flops.heads;
    sum.indexer += flops.indexer;
  }
  return sum;
}

}  // namespace

AttentionFlops decode_attention_flops(const ModelSpec& spec, uint64_t tokens) {
  return sum_of_layers(spec, true, of(tokens));
}

AttentionFlops prefill_attention_flops(const ModelSpec& spec, uint64_t tokens) {
  return sum_of_layers(spec, false, of(tokens));
}

}  // namespace nibble
