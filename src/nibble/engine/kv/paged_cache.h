// Keys and values of sequences, in pages of 64 tokens a layer. What is read went through the cache's type, the newest
// token's too, so that results do not depend on how a sequence was cut into calls.
//
//   grouped-query   of each head keys (key_dim, 64), transposed for attention, and values (64, value_dim)
//   latent (MLA)    one head; rows (64, rank + rope): keys are whole rows, values their first `rank` columns
//
// E4M3: one float32 scale for each token and head, of keys and of values: amax / 448 of that token alone (dynamic), or
// fixed ones of the layer. With dynamic scales an element x of a head whose largest magnitude is A comes back within
// max(|x| / 16, A / 448 · 2^-10): half a step of three bits of mantissa, and of the smallest codes (docs/engine.md says
// what follows for attention). Fixed scales clamp at 448 times themselves.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "nibble/base/aligned_bytes.h"
#include "nibble/kernels/cpu/vector/vector_loops.h"
#include "nibble/models/model_spec.h"

namespace nibble {

uint64_t cache_element_bytes(CacheElement element);
// What keys and values are kept as, under a name of numerics/cache_types.h; any other name is float32.
CacheElement cache_element_of(std::string_view name);

// Of a layer's keys and values (a latent layer has keys alone): none, one for all heads, or one a head.
struct CacheScales {
  std::vector<float> keys, values;
};

struct CacheLayout {
  CacheElement element = CacheElement::kBF16;
  CacheScales fixed;  // kE4M3: instead of each token's own
  bool latent = false;
  uint64_t heads = 0, key_dim = 0, value_dim = 0;
  uint64_t window = 0;  // 0: all tokens are kept

  uint64_t element_bytes() const { return cache_element_bytes(element); }
  uint64_t key_bytes() const;    // of a page and head
  uint64_t value_bytes() const;  // 0: latent
  uint64_t scale_bytes() const;
  uint64_t head_bytes() const { return key_bytes() + value_bytes() + scale_bytes(); }
  uint64_t page_bytes() const { return heads * head_bytes(); }
};

CacheLayout cache_layout(const ModelSpec& spec, const LayerSpec& layer, CacheElement element,
                         const CacheScales& fixed = {});

// One layer of one sequence.
class CachedLayer {
 public:
  explicit CachedLayer(const CacheLayout& layout) : layout_(layout) {}

  // Makes pages for tokens [position, end), and gives up those that no window from `position` on reaches.
  void reserve(uint64_t position, uint64_t end);
  // Stores token `position`: keys (heads, key_dim), values (heads, value_dim), which a latent layer takes from the
  // keys. A position that is there is overwritten. Thread-safe for different positions of pages that reserve() made.
  void store(uint64_t position, const float* keys, const float* values);
  // Forgets all from `position` on. With a window, what it reached before `position` may be gone already: go on from
  // there only if no more than a page was stored behind it.
  void truncate(uint64_t position);

  // Page and head as float32: keys (key_dim, 64) transposed, values (64, value_dim).
  void load(uint64_t page, uint64_t head, float* keys, float* values) const;
  // The same as it lies, up to the next store() or reserve(): what attention makes of it has load()'s bits. Not latent.
  AttentionPage view(uint64_t page, uint64_t head) const;

  const CacheLayout& layout() const { return layout_; }
  uint64_t bytes() const;

 private:
  std::byte* head_of(uint64_t page, uint64_t head) const { return pages_[page].data() + head * layout_.head_bytes(); }
  CacheLayout layout_;
  std::vector<AlignedBytes> pages_;
  uint64_t gone_pages_ = 0;  // the first ones, given up
};

class CachedSequence {
 public:
  // `fixed`: a layer each, or one for all of them; none: each token's own scales.
  CachedSequence(const ModelSpec& spec, CacheElement element, std::span<const CacheScales> fixed = {});

  uint64_t tokens() const { return tokens_; }
  void advance(uint64_t tokens) { tokens_ += tokens; }
  void truncate(uint64_t tokens);
  CachedLayer& layer(uint64_t index) { return layers_[index]; }
  uint64_t bytes() const;

 private:
  std::vector<CachedLayer> layers_;
  uint64_t tokens_ = 0;
};

}  // namespace nibble
