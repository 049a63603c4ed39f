#include "nibble/engine/bench/random_cache.h"

#include <algorithm>
#include <vector>

#include "nibble/base/rng.h"

namespace nibble {
namespace {

// Tokens take their numbers from one list, each from another place: fresh ones for each would cost minutes.
constexpr uint64_t kPlaces = 4099;

void fill(uint64_t tokens, uint64_t seed, CachedLayer* layer) {
  const CacheLayout& layout = layer->layout();
  const uint64_t keys = layout.heads * layout.key_dim, values = layout.latent ? 0 : layout.heads * layout.value_dim;
  std::vector<float> numbers(keys + values + kPlaces);
  for (uint64_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(random_normal(seed, i));
  for (uint64_t page = 0; page < tokens; page += kPageTokens) {
    const uint64_t end = std::min(tokens, page + kPageTokens);
    layer->reserve(page, end);
    for (uint64_t token = page; token < end; ++token) {
      const float* of = numbers.data() + random_bits(seed, token) % kPlaces;
      layer->store(token, of, of + keys);
    }
  }
}

}  // namespace

void fill_randomly(uint64_t layers, uint64_t tokens, ThreadPool* pool, CachedSequence* sequence) {
  pool->run(layers, [&](uint64_t i) { fill(tokens, i + 1, &sequence->layer(i)); });
  sequence->advance(tokens);
}

}  // namespace nibble
