#include "nibble/ledger/kv_cache.h"

#include <algorithm>
#include <initializer_list>
#include <string>

#include "nibble/base/checked_math.h"
#include "nibble/base/error.h"

namespace nibble {
namespace {

constexpr uint64_t kStateBytes = 4, kConvBytes = 2;

// Beyond these a configuration is nonsense, and products with tokens and layers would not fit 64 bits.
constexpr uint64_t kMostElements = uint64_t{1} << 20;  // of one entry
constexpr uint64_t kMostState = uint64_t{1} << 40;     // bytes

void check_range(uint64_t number, uint64_t most, const char* what, size_t layer) {
  if (number <= most) return;
  throw Error(std::string("the cache of a layer is out of range: ") + what)
      .value("layer", layer)
      .value("size", number)
      .value("most", most)
      .way_out("take config.json from the same release as the weights");
}

void check_layer(const KvLayer& layer, size_t index) {
  check_range(layer.elements, kMostElements, "elements of an entry", index);
  check_range(layer.index_elements, kMostElements, "elements of an indexer's key", index);
  check_range(layer.window_elements, kMostElements, "elements of a token in the window", index);
  check_range(layer.window, kMostState / kMostElements, "tokens of the window", index);
  check_range(layer.state_bytes, kMostState, "bytes of the state", index);
}

// Products of untrusted sizes, at most 2^63: check_layer refuses what comes near.
uint64_t product(std::initializer_list<uint64_t> factors) {
  uint64_t result = 1;
  for (const uint64_t factor : factors) {
    const auto next = checked_mul(result, factor);
    if (!next || *next > uint64_t{1} << 61) return uint64_t{1} << 61;
    result = *next;
  }
  return result;
}

void set_keys(uint64_t elements, const LayerSpec& layer, KvLayer* out) {
  if (layer.sliding_window != 0) {
    out->window = layer.sliding_window;
    out->window_elements = elements;
  } else {
    out->elements = elements;
  }
}

void set_compressed(const ModelSpec& spec, const LayerSpec& layer, KvLayer* out) {
  out->window = layer.sliding_window;
  out->window_elements = spec.head_dim;
  if (layer.compress_ratio == 0) return;
  out->tokens_per_entry = layer.compress_ratio;
  out->elements = spec.head_dim;
}

void set_state(const LinearAttentionSpec& linear, KvLayer* out) {
  const uint64_t keys = product({2, linear.key_heads, linear.key_dim});
  const uint64_t values = product({linear.heads, linear.value_dim});
  out->state_bytes = product({linear.heads, linear.key_dim, linear.value_dim, kStateBytes}) +
                     product({keys + values, linear.conv_kernel - 1, kConvBytes});
}

KvLayer layer_of(const ModelSpec& spec, size_t index) {
  const LayerSpec& layer = spec.layers[index];
  KvLayer out;
  out.stored = layer.stores_kv;
  // Compressed attention's window is each layer's own.
  out.window_stored = layer.stores_kv || layer.attention == AttentionKind::kCompressed;
  out.index_stored = layer.stores_index;
  if (layer.chosen_keys || layer.indexer) out.chosen = product({spec.indexer.topk, spec.indexer.block});
  switch (layer.attention) {
    case AttentionKind::kGqa: {
      const AttentionShape shape = spec.attention_shape(layer);
      set_keys(product({shape.kv_heads, shape.head_dim + shape.v_head_dim}), layer, &out);
      out.heads = shape.kv_heads;
      break;
    }
    case AttentionKind::kMla: set_keys(spec.kv_lora_rank + spec.qk_rope_head_dim, layer, &out); break;
    case AttentionKind::kCompressed: set_compressed(spec, layer, &out); break;
    case AttentionKind::kLinear:
      set_state(spec.linear, &out);
      out.heads = spec.linear.heads;
      break;
    case AttentionKind::kNone: break;
    case AttentionKind::kOther:
      throw Error("the cache of a layer cannot be counted: its kind of attention is unknown")
          .value("layer", index)
          .way_out("use a release of nibble that knows this model");
  }
  if (layer.indexer) {
    out.index_elements = spec.indexer.head_dim;
    out.tokens_per_index_entry = spec.indexer.tokens_per_key;
    if (layer.compress_ratio != 0) out.tokens_per_index_entry = layer.compress_ratio;
  }
  out.state_bytes += product({layer.conv_state, kConvBytes});
  check_layer(out, index);
  return out;
}

}  // namespace

KvCache::KvCache(const ModelSpec& spec) {
  layers_.reserve(spec.layers.size());
  for (size_t i = 0; i < spec.layers.size(); ++i) layers_.push_back(layer_of(spec, i));
}

const KvLayer* KvCache::last_attention() const {
  for (size_t i = layers_.size(); i-- > 0;) {
    if (layers_[i].elements + layers_[i].window_elements != 0) return &layers_[i];
  }
  return nullptr;
}

double KvCache::bytes_per_token(uint64_t element_bytes) const {
  double elements = 0;
  for (const KvLayer& layer : layers_) {
    if (layer.stored) elements += static_cast<double>(layer.elements) / static_cast<double>(layer.tokens_per_entry);
    if (layer.index_stored)
      elements += static_cast<double>(layer.index_elements) / static_cast<double>(layer.tokens_per_index_entry);
  }
  return elements * static_cast<double>(element_bytes);
}

uint64_t KvCache::bytes_per_sequence(uint64_t element_bytes) const {
  uint64_t bytes = 0;
  for (const KvLayer& layer : layers_) {
    if (layer.window_stored) bytes += layer.window * layer.window_elements * element_bytes;
    bytes += layer.state_bytes;
  }
  return bytes;
}

uint64_t KvLayer::index_bytes(uint64_t tokens, uint64_t element_bytes) const {
  return tokens / tokens_per_index_entry * index_elements * element_bytes;
}

uint64_t KvLayer::bytes(uint64_t tokens, uint64_t element_bytes) const { return rank_bytes(tokens, element_bytes, 1); }

uint64_t KvLayer::rank_bytes(uint64_t tokens, uint64_t element_bytes, uint64_t tp) const {
  uint64_t kept = 0;
  if (stored) kept += tokens / tokens_per_entry * elements;
  if (window_stored) kept += std::min(tokens, window) * window_elements;
  const uint64_t index = index_stored ? index_bytes(tokens, element_bytes) : 0;
  return ceil_div(kept * element_bytes + state_bytes, std::min(heads, tp)) + index;
}

uint64_t KvLayer::read_bytes(uint64_t tokens, uint64_t element_bytes) const {
  uint64_t entries = tokens / tokens_per_entry;
  if (chosen != 0) entries = std::min(entries, chosen);
  const uint64_t read = entries * elements + std::min(tokens, window) * window_elements;
  return read * element_bytes + 2 * state_bytes + index_bytes(tokens, element_bytes);
}

double KvLayer::rank_read_bytes(uint64_t tokens, uint64_t element_bytes, uint64_t tp) const {
  const uint64_t index = index_bytes(tokens, element_bytes);
  const uint64_t shared = read_bytes(tokens, element_bytes) - index;
  return static_cast<double>(shared) / static_cast<double>(std::min(heads, tp)) + static_cast<double>(index);
}

uint64_t KvCache::bytes(uint64_t tokens, uint64_t element_bytes) const {
  uint64_t bytes = 0;
  for (const KvLayer& layer : layers_) bytes += layer.bytes(tokens, element_bytes);
  return bytes;
}

uint64_t KvCache::read_bytes(uint64_t tokens, uint64_t element_bytes) const {
  uint64_t bytes = 0;
  for (const KvLayer& layer : layers_) bytes += layer.read_bytes(tokens, element_bytes);
  return bytes;
}

}  // namespace nibble
