// What E4M3 with a scale for each token and head costs, against its closed form: element by element, and in what
// attention makes of it (docs/engine.md derives the bound).
#include <gtest/gtest.h>

#include <cmath>

#include "nibble/base/rng.h"
#include "nibble/engine/kv/paged_cache.h"
#include "nibble/engine/layers/attention.h"

namespace nibble {
namespace {

constexpr uint64_t kTokens = 150, kHeads = 4, kKeyHeads = 2, kWidth = 64;  // three pages
constexpr double kFloat32 = 1e-6;                                          // of the division and the product

// The 127 magnitudes of E4M3, by their definition.
std::vector<double> grid() {
  std::vector<double> values;
  for (int code = 0; code < 127; ++code) {
    const int exponent = code / 8, mantissa = code % 8;
    values.push_back(exponent == 0 ? mantissa * 0x1p-9 : (1 + mantissa / 8.0) * std::exp2(exponent - 7));
  }
  return values;
}

// How far a stored element may be from x where the largest of its head is `amax`.
double bound_of(double x, double amax) { return std::max(std::abs(x) / 16, amax / 448 * 0x1p-10) * (1 + kFloat32); }

double largest(const float* values) {
  double amax = 0;
  for (uint64_t d = 0; d < kWidth; ++d) amax = std::max(amax, std::abs(static_cast<double>(values[d])));
  return amax;
}

// Keys and values of all tokens; sizes over 2^12, so that the small codes are used too.
struct KeysAndValues {
  std::vector<float> keys = std::vector<float>(kTokens * kKeyHeads * kWidth), values = keys;

  explicit KeysAndValues(uint64_t seed, double spread) {
    for (uint64_t i = 0; i < keys.size(); ++i) {
      const double size = std::exp2(-spread * random_uniform(seed, 3 * i));
      keys[i] = static_cast<float>(random_normal(seed, 3 * i + 1) * size);
      values[i] = static_cast<float>(random_normal(seed, 3 * i + 2) * size);
    }
  }
  const float* key(uint64_t token, uint64_t head) const { return keys.data() + (token * kKeyHeads + head) * kWidth; }
  const float* value(uint64_t token, uint64_t head) const {
    return values.data() + (token * kKeyHeads + head) * kWidth;
  }

  CachedSequence stored(CacheElement element, std::span<const CacheScales> fixed = {}) const {
    ModelSpec spec;
    spec.heads = kHeads;
    spec.kv_heads = kKeyHeads;
    spec.head_dim = kWidth;
    spec.layers.resize(1);
    CachedSequence sequence(spec, element, fixed);
    sequence.layer(0).reserve(0, kTokens);
    for (uint64_t t = 0; t < kTokens; ++t) sequence.layer(0).store(t, key(t, 0), value(t, 0));
    sequence.advance(kTokens - 1);  // the last token is the batch's
    return sequence;
  }
};

// x is what came back for `wanted` under a scale: its nearest code times the scale.
void expect_nearest(float x, float wanted, double scale) {
  static const std::vector<double> codes = grid();
  const double target = std::min(std::abs(static_cast<double>(wanted)) / scale, 448.0);
  double nearest = 1e300;
  for (const double code : codes) nearest = std::min(nearest, std::abs(code - target));
  const double got = std::abs(static_cast<double>(x)) / scale;
  ASSERT_NEAR(std::abs(got - target), nearest, kFloat32 * (1 + target)) << x << " for " << wanted << " by " << scale;
  ASSERT_TRUE(x == 0 || std::signbit(x) == std::signbit(wanted));
}

template <typename Scale>
void expect_elements(const KeysAndValues& input, CachedSequence* sequence, const Scale& scale_of) {
  for (uint64_t head = 0; head < kKeyHeads; ++head) {
    for (uint64_t page = 0; page * kPageTokens < kTokens; ++page) {
      std::vector<float> keys(kWidth * kPageTokens), values(kWidth * kPageTokens);
      sequence->layer(0).load(page, head, keys.data(), values.data());
      for (uint64_t t = page * kPageTokens; t < std::min(kTokens, (page + 1) * kPageTokens); ++t) {
        const uint64_t slot = t % kPageTokens;
        for (uint64_t d = 0; d < kWidth; ++d) {
          expect_nearest(keys[d * kPageTokens + slot], input.key(t, head)[d], scale_of(input.key(t, head), head, true));
          expect_nearest(values[slot * kWidth + d], input.value(t, head)[d],
                         scale_of(input.value(t, head), head, false));
        }
      }
    }
  }
}

TEST(Fp8Cache, an_element_is_its_nearest_code_times_its_own_tokens_scale) {
  const KeysAndValues input(1, 12);
  CachedSequence sequence = input.stored(CacheElement::kE4M3);
  expect_elements(input, &sequence, [](const float* x, uint64_t, bool) { return largest(x) / 448; });
}

TEST(Fp8Cache, an_element_is_its_nearest_code_times_a_fixed_scale_of_its_head) {
  const KeysAndValues input(2, 6);
  // One key head's scale clamps, the other's is coarse.
  const CacheScales fixed{{0.00390625F, 0.25F}, {0.03125F}};
  CachedSequence sequence = input.stored(CacheElement::kE4M3, std::span(&fixed, 1));
  expect_elements(input, &sequence, [&](const float*, uint64_t head, bool key) {
    return static_cast<double>(key ? fixed.keys[head] : fixed.values[0]);
  });
}

TEST(Fp8Cache, an_element_is_within_a_sixteenth_or_half_of_the_smallest_step) {
  const KeysAndValues input(3, 12);
  CachedSequence sequence = input.stored(CacheElement::kE4M3);
  double most = 0;
  for (uint64_t head = 0; head < kKeyHeads; ++head) {
    std::vector<float> keys(kWidth * kPageTokens), values(kWidth * kPageTokens);
    sequence.layer(0).load(0, head, keys.data(), values.data());
    for (uint64_t t = 0; t < kPageTokens; ++t) {
      const double amax = largest(input.key(t, head));
      for (uint64_t d = 0; d < kWidth; ++d) {
        const double wanted = static_cast<double>(input.key(t, head)[d]);
        const double error = std::abs(static_cast<double>(keys[d * kPageTokens + t]) - wanted);
        ASSERT_LE(error, bound_of(wanted, amax));
        most = std::max(most, error / bound_of(wanted, amax));
      }
    }
  }
  EXPECT_GT(most, 0.95);  // the bound is met, so it says something
}

std::vector<float> attention(CachedSequence* sequence, const std::vector<float>& q, const float* sinks) {
  std::vector<float> out(kHeads * kWidth);
  Batch batch;
  batch.add(sequence, 1);
  AttentionRequest request;
  request.batch = &batch;
  request.heads = kHeads;
  request.q = q.data();
  request.sinks = sinks;
  request.out = out.data();
  ThreadPool pool(1);
  attend(request, &pool);
  return out;
}

// For one query head and every column of its output: with e the largest error of a score,
//   sum over tokens of  e^2e p |error of v|  +  (e^2e - 1) p |v|.
std::vector<double> output_bound(const KeysAndValues& input, const float* q, uint64_t key_head, double sink) {
  std::vector<double> scores(kTokens);
  double worst = 0, top = sink, sum = 0;
  for (uint64_t t = 0; t < kTokens; ++t) {
    const float* key = input.key(t, key_head);
    const double amax = largest(key);
    double error = 0;
    for (uint64_t d = 0; d < kWidth; ++d) {
      scores[t] += static_cast<double>(q[d]) * static_cast<double>(key[d]);
      error += std::abs(static_cast<double>(q[d])) * bound_of(static_cast<double>(key[d]), amax);
    }
    worst = std::max(worst, error);
    top = std::max(top, scores[t]);
  }
  for (const double score : scores) sum += std::exp(score - top);
  sum += std::exp(sink - top);
  std::vector<double> bound(kWidth);
  for (uint64_t t = 0; t < kTokens; ++t) {
    const float* value = input.value(t, key_head);
    const double p = std::exp(scores[t] - top) / sum, amax = largest(value);
    for (uint64_t d = 0; d < kWidth; ++d) {
      const double v = static_cast<double>(value[d]);
      bound[d] += p * (std::exp(2 * worst) * bound_of(v, amax) + std::expm1(2 * worst) * std::abs(v));
    }
  }
  return bound;
}

TEST(Fp8Cache, what_attention_gives_is_within_the_bound) {
  const std::vector<float> sinks(kHeads, 0.5F);
  for (uint64_t seed = 10; seed < 20; ++seed) {
    const KeysAndValues input(seed, 4);
    std::vector<float> q(kHeads * kWidth);
    for (uint64_t i = 0; i < q.size(); ++i) q[i] = static_cast<float>(random_normal(seed + 100, i) / 8);
    const float* const sink = seed % 2 == 0 ? sinks.data() : nullptr;
    CachedSequence exact = input.stored(CacheElement::kF32), rounded = input.stored(CacheElement::kE4M3);
    const std::vector<float> wanted = attention(&exact, q, sink), got = attention(&rounded, q, sink);
    double most = 0;
    for (uint64_t head = 0; head < kHeads; ++head) {
      const std::vector<double> bound =
          output_bound(input, q.data() + head * kWidth, head / (kHeads / kKeyHeads), sink == nullptr ? -1e30 : 0.5);
      for (uint64_t d = 0; d < kWidth; ++d) {
        const double error =
            std::abs(static_cast<double>(got[head * kWidth + d]) - static_cast<double>(wanted[head * kWidth + d]));
        ASSERT_LE(error, bound[d] + kFloat32) << "seed " << seed << ", head " << head << ", column " << d;
        most = std::max(most, error / bound[d]);
      }
    }
    EXPECT_GT(most, 0.01) << "a bound a hundred times too wide says little";
  }
}

}  // namespace
}  // namespace nibble
