#include "nibble/engine/kv/paged_cache.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "nibble/base/check.h"
#include "nibble/numerics/activations.h"
#include "nibble/numerics/cache_types.h"
#include "nibble/numerics/codec/bf16.h"
#include "nibble/numerics/codec/e4m3.h"

namespace nibble {
namespace {

// One value into the cache's type. `scale` is 1 but for E4M3.
void put(CacheElement element, float value, float scale, std::byte* at) {
  switch (element) {
    case CacheElement::kF32: std::memcpy(at, &value, sizeof(value)); return;
    case CacheElement::kBF16: {
      const uint16_t bits = bf16_encode(value);
      std::memcpy(at, &bits, sizeof(bits));
      return;
    }
    case CacheElement::kE4M3: *at = static_cast<std::byte>(e4m3_encode(value / scale)); return;
  }
}

// The scale of n keys or values of one head; `fixed` as in CacheScales.
float scale_of(CacheElement element, const std::vector<float>& fixed, uint64_t head, const float* values, uint64_t n) {
  if (element != CacheElement::kE4M3) return 1;
  if (!fixed.empty()) return fixed.size() == 1 ? fixed.front() : fixed[head];
  float amax = 0;
  for (uint64_t i = 0; i < n; ++i) {
    // A NaN is kept: the scale becomes one, and the token's keys with it.
    const float magnitude = std::fabs(values[i]);
    amax = magnitude > amax || std::isnan(magnitude) ? magnitude : amax;
    if (std::isnan(amax)) break;
  }
  return activation_scale(amax, 0, kE4m3Max, false);
}

}  // namespace

CacheElement cache_element_of(std::string_view name) {
  for (const CacheType& type : cache_types()) {
    if (type.name == name) return type.element_bytes == 1 ? CacheElement::kE4M3 : CacheElement::kBF16;
  }
  return CacheElement::kF32;
}

uint64_t cache_element_bytes(CacheElement element) {
  return element == CacheElement::kF32 ? 4 : element == CacheElement::kBF16 ? 2 : 1;
}
uint64_t CacheLayout::key_bytes() const { return kPageTokens * key_dim * element_bytes(); }
uint64_t CacheLayout::value_bytes() const { return latent ? 0 : kPageTokens * value_dim * element_bytes(); }
uint64_t CacheLayout::scale_bytes() const {
  return element == CacheElement::kE4M3 ? (latent ? 1 : 2) * kPageTokens * sizeof(float) : 0;
}

CacheLayout cache_layout(const ModelSpec& spec, const LayerSpec& layer, CacheElement element,
                         const CacheScales& fixed) {
  CacheLayout layout{.element = element, .fixed = fixed, .window = layer.sliding_window};
  if (layer.attention == AttentionKind::kMla) {
    layout.latent = true;
    layout.heads = 1;
    layout.key_dim = spec.kv_lora_rank + spec.qk_rope_head_dim;
    layout.value_dim = spec.kv_lora_rank;
  } else {
    const AttentionShape shape = spec.attention_shape(layer);
    layout.heads = shape.kv_heads;
    layout.key_dim = shape.head_dim;
    layout.value_dim = shape.v_head_dim;
  }
  for (const std::vector<float>* scales : {&fixed.keys, &fixed.values}) {
    NIBBLE_CHECK(scales->size() <= 1 || scales->size() == layout.heads);
  }
  return layout;
}

void CachedLayer::reserve(uint64_t position, uint64_t end) {
  const uint64_t wanted = (end + kPageTokens - 1) / kPageTokens;
  while (pages_.size() < wanted) {
    pages_.emplace_back(layout_.page_bytes());
    std::memset(pages_.back().data(), 0, layout_.page_bytes());
  }
  if (layout_.window == 0) return;
  // One page more is kept, for a draft that is taken back.
  const uint64_t reached = layout_.window + kPageTokens;
  const uint64_t gone = position < reached ? 0 : (position - reached) / kPageTokens;
  for (; gone_pages_ < gone; ++gone_pages_) pages_[gone_pages_] = AlignedBytes();
}

void CachedLayer::store(uint64_t position, const float* keys, const float* values) {
  const uint64_t page = position / kPageTokens, slot = position % kPageTokens, size = layout_.element_bytes();
  NIBBLE_CHECK(page >= gone_pages_ && page < pages_.size());
  for (uint64_t h = 0; h < layout_.heads; ++h) {
    std::byte* at = head_of(page, h);
    const float* key = keys + h * layout_.key_dim;
    const float key_scale = scale_of(layout_.element, layout_.fixed.keys, h, key, layout_.key_dim);
    for (uint64_t d = 0; d < layout_.key_dim; ++d) {
      const uint64_t index = layout_.latent ? slot * layout_.key_dim + d : d * kPageTokens + slot;
      put(layout_.element, key[d], key_scale, at + index * size);
    }
    float value_scale = 1;
    if (!layout_.latent) {
      const float* value = values + h * layout_.value_dim;
      value_scale = scale_of(layout_.element, layout_.fixed.values, h, value, layout_.value_dim);
      std::byte* row = at + layout_.key_bytes() + slot * layout_.value_dim * size;
      for (uint64_t d = 0; d < layout_.value_dim; ++d) put(layout_.element, value[d], value_scale, row + d * size);
    }
    if (layout_.scale_bytes() == 0) continue;
    auto* scales = reinterpret_cast<float*>(at + layout_.key_bytes() + layout_.value_bytes());
    scales[slot] = key_scale;
    if (!layout_.latent) scales[kPageTokens + slot] = value_scale;
  }
}

void CachedLayer::truncate(uint64_t position) {
  const uint64_t kept = (position + kPageTokens - 1) / kPageTokens;
  while (pages_.size() > kept) pages_.pop_back();
  gone_pages_ = std::min<uint64_t>(gone_pages_, pages_.size());
}

void CachedLayer::load(uint64_t page, uint64_t head, float* keys, float* values) const {
  NIBBLE_CHECK(page >= gone_pages_ && page < pages_.size());
  const std::byte* at = head_of(page, head);
  const auto* scales = reinterpret_cast<const float*>(at + layout_.key_bytes() + layout_.value_bytes());
  const bool scaled = layout_.scale_bytes() != 0;
  const uint64_t wide = layout_.key_dim, narrow = layout_.value_dim;
  if (!layout_.latent) {
    vector_loops().expand(layout_.element, at, kPageTokens * wide, keys);
    vector_loops().expand(layout_.element, at + layout_.key_bytes(), kPageTokens * narrow, values);
    if (!scaled) return;
    for (uint64_t d = 0; d < wide; ++d) {
      for (uint64_t t = 0; t < kPageTokens; ++t) keys[d * kPageTokens + t] *= scales[t];
    }
    for (uint64_t t = 0; t < kPageTokens; ++t) {
      vector_loops().scale(values + t * narrow, scales[kPageTokens + t], narrow);
    }
    return;
  }
  std::vector<float> row(wide);
  for (uint64_t t = 0; t < kPageTokens; ++t) {
    vector_loops().expand(layout_.element, at + t * wide * layout_.element_bytes(), wide, row.data());
    if (scaled) vector_loops().scale(row.data(), scales[t], wide);
    for (uint64_t d = 0; d < wide; ++d) keys[d * kPageTokens + t] = row[d];
    std::copy_n(row.data(), narrow, values + t * narrow);
  }
}

AttentionPage CachedLayer::view(uint64_t page, uint64_t head) const {
  NIBBLE_CHECK(!layout_.latent && page >= gone_pages_ && page < pages_.size());
  const std::byte* at = head_of(page, head);
  AttentionPage view{.element = layout_.element, .keys = at, .values = at + layout_.key_bytes()};
  if (layout_.scale_bytes() == 0) return view;
  view.key_scales = reinterpret_cast<const float*>(at + layout_.key_bytes() + layout_.value_bytes());
  view.value_scales = view.key_scales + kPageTokens;
  return view;
}

uint64_t CachedLayer::bytes() const { return (pages_.size() - gone_pages_) * layout_.page_bytes(); }

CachedSequence::CachedSequence(const ModelSpec& spec, CacheElement element, std::span<const CacheScales> fixed) {
  NIBBLE_CHECK(fixed.size() <= 1 || fixed.size() == spec.layers.size());
  layers_.reserve(spec.layers.size());
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    const CacheScales own = fixed.empty() ? CacheScales{} : fixed[fixed.size() == 1 ? 0 : i];
    layers_.emplace_back(cache_layout(spec, spec.layers[i], element, own));
  }
}

void CachedSequence::truncate(uint64_t tokens) {
  NIBBLE_CHECK(tokens <= tokens_);
  for (CachedLayer& layer : layers_) layer.truncate(tokens);
  tokens_ = tokens;
}

uint64_t CachedSequence::bytes() const {
  uint64_t sum = 0;
  for (const CachedLayer& layer : layers_) sum += layer.bytes();
  return sum;
}

}  // namespace nibble
