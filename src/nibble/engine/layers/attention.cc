#include "nibble/engine/layers/attention.h"

#include <algorithm>
#include <limits>

#include "nibble/base/checked_math.h"
#include "nibble/kernels/cpu/vector/vector_loops.h"

namespace nibble {
namespace {

constexpr uint64_t kTokensPerUnit = 16;  // that read a page while it is in the cache
constexpr uint64_t kRowsAsItLies = 16;   // up to so many read a page as it lies; for more it is expanded to float32

// Some tokens of one sequence and some query heads of one key head.
struct Unit {
  const BatchSequence* sequence = nullptr;
  uint64_t first = 0, tokens = 0;  // within the sequence's part of the batch
  uint64_t key_head = 0, head = 0, heads = 0;
};

// A layer with one key head for all (MLA) is cut by query heads, so that there is work for all threads.
std::vector<Unit> cut(const AttentionRequest& request, uint64_t key_heads, int threads) {
  const uint64_t group = request.heads / key_heads;
  const uint64_t parts = key_heads >= static_cast<uint64_t>(threads) ? 1 : static_cast<uint64_t>(threads);
  const uint64_t per_part = ceil_div(group, std::min(parts, group));
  std::vector<Unit> units;
  for (const BatchSequence& sequence : request.batch->sequences) {
    for (uint64_t t = 0; t < sequence.tokens; t += kTokensPerUnit) {
      for (uint64_t k = 0; k < key_heads; ++k) {
        for (uint64_t h = 0; h < group; h += per_part) {
          units.push_back({&sequence, t, std::min(kTokensPerUnit, sequence.tokens - t), k, k * group + h,
                           std::min(per_part, group - h)});
        }
      }
    }
  }
  return units;
}

class UnitAttention {
 public:
  UnitAttention(const AttentionRequest& request, const Unit& unit)
      : request_(request),
        unit_(unit),
        cache_(unit.sequence->cache->layer(request.layer)),
        layout_(cache_.layout()),
        expands_(layout_.latent || unit.tokens * unit.heads > kRowsAsItLies),
        keys_(expands_ ? layout_.key_dim * kPageTokens : 0),
        values_(expands_ ? layout_.value_dim * kPageTokens : 0),
        largest_(unit.tokens * unit.heads, -std::numeric_limits<float>::infinity()),
        sum_(unit.tokens * unit.heads, 0.0F) {}

  void run() {
    start();
    const uint64_t from = unit_.sequence->position + unit_.first;
    const uint64_t first_page = begin_of(from) / kPageTokens;
    const uint64_t last_page = (from + unit_.tokens - 1) / kPageTokens;
    for (uint64_t page = first_page; page <= last_page; ++page) {
      const AttentionPage view = read(page, last_page);
      for (uint64_t t = 0; t < unit_.tokens; ++t) add_page(page, view, t);
    }
    for (uint64_t row = 0; row < unit_.tokens * unit_.heads; ++row) {
      vector_loops().scale(out_of(row / unit_.heads) + row % unit_.heads * layout_.value_dim, 1 / sum_[row],
                           layout_.value_dim);
    }
  }

 private:
  // The first token that one at `position` sees.
  uint64_t begin_of(uint64_t position) const {
    return layout_.window == 0 || position < layout_.window ? 0 : position + 1 - layout_.window;
  }
  uint64_t row_of(uint64_t token) const {
    return (unit_.sequence->first + unit_.first + token) * request_.heads + unit_.head;
  }
  const float* q_of(uint64_t token) const { return request_.q + row_of(token) * layout_.key_dim; }
  float* out_of(uint64_t token) const { return request_.out + row_of(token) * layout_.value_dim; }

  void start() {
    for (uint64_t t = 0; t < unit_.tokens; ++t) {
      std::fill_n(out_of(t), unit_.heads * layout_.value_dim, 0.0F);
      if (request_.sinks == nullptr) continue;
      for (uint64_t h = 0; h < unit_.heads; ++h) {
        largest_[t * unit_.heads + h] = request_.sinks[unit_.head + h];
        sum_[t * unit_.heads + h] = 1;
      }
    }
  }

  AttentionPage read(uint64_t page, uint64_t last_page) {
    if (!expands_) {
      AttentionPage view = cache_.view(page, unit_.key_head);
      if (page < last_page) view.next = cache_.view(page + 1, unit_.key_head).keys;
      return view;
    }
    cache_.load(page, unit_.key_head, keys_.data(), values_.data());
    return {.keys = keys_.data(), .values = values_.data()};
  }

  void add_page(uint64_t page, AttentionPage view, uint64_t token) {
    const uint64_t position = unit_.sequence->position + unit_.first + token, start = page * kPageTokens;
    view.begin = std::clamp(begin_of(position), start, start + kPageTokens) - start;
    view.end = std::clamp(position + 1, start, start + kPageTokens) - start;
    if (view.begin >= view.end) return;
    AttentionState state;
    state.rows = unit_.heads;
    state.key_dim = layout_.key_dim;
    state.value_dim = layout_.value_dim;
    state.q = q_of(token);
    state.largest = largest_.data() + token * unit_.heads;
    state.sum = sum_.data() + token * unit_.heads;
    state.out = out_of(token);
    vector_loops().attend(state, view);
  }

  const AttentionRequest& request_;
  const Unit& unit_;
  const CachedLayer& cache_;
  const CacheLayout& layout_;
  const bool expands_;
  std::vector<float> keys_, values_, largest_, sum_;
};

}  // namespace

void attend(const AttentionRequest& request, ThreadPool* pool) {
  if (request.batch->sequences.empty()) return;
  const CacheLayout& layout = request.batch->sequences[0].cache->layer(request.layer).layout();
  const std::vector<Unit> units = cut(request, layout.heads, pool->threads());
  pool->run(units.size(), [&](uint64_t i) { UnitAttention(request, units[i]).run(); });
}

}  // namespace nibble
