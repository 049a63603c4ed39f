#include "nibble/kernels/cpu/vector/vector_loops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "nibble/base/rng.h"
#include "nibble/numerics/codec/bf16.h"
#include "nibble/numerics/codec/bits.h"
#include "nibble/numerics/codec/e4m3.h"

namespace nibble {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<const VectorLoops*> tables() {
  std::vector<const VectorLoops*> all = {&scalar_vector_loops()};
  if (best_isa() >= Isa::kAvx2) all.push_back(&avx2_vector_loops());
  if (best_isa() >= Isa::kAvx512) all.push_back(&avx512_vector_loops());
  return all;
}

std::vector<float> normals(uint64_t seed, uint64_t n, double deviation = 1) {
  std::vector<float> values(n);
  for (uint64_t i = 0; i < n; ++i) values[i] = static_cast<float>(deviation * random_normal(seed, i));
  return values;
}

void expect_same_bits(const std::vector<float>& a, const std::vector<float>& b, const std::string& what) {
  ASSERT_EQ(a.size(), b.size());
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0) << what;
}

// Runs one loop of every instruction set over the same data; the scalar one's result, which the others must equal.
std::vector<float> same_everywhere(const std::function<std::vector<float>(const VectorLoops&)>& run) {
  const std::vector<float> wanted = run(scalar_vector_loops());
  for (const VectorLoops* loops : tables()) expect_same_bits(run(*loops), wanted, std::string(isa_name(loops->isa)));
  return wanted;
}

const uint64_t kSizes[] = {1, 7, 16, 33, 64, 2880};

TEST(VectorLoops, rms_norm) {
  for (const uint64_t n : kSizes) {
    const std::vector<float> x = normals(1, n), weight = normals(2, n);
    const auto got = same_everywhere([&](const VectorLoops& loops) {
      std::vector<float> out(n);
      loops.rms_norm(x.data(), weight.data(), n, 1e-5F, out.data());
      return out;
    });
    double squares = 0;
    for (const float v : x) squares += static_cast<double>(v) * static_cast<double>(v);
    for (uint64_t i = 0; i < n; ++i) {
      const double wanted = static_cast<double>(x[i]) / std::sqrt(squares / static_cast<double>(n) + 1e-5);
      EXPECT_NEAR(got[i], wanted * static_cast<double>(weight[i]), 1e-6 * (1 + std::abs(wanted) * 4)) << n << ", " << i;
    }
  }
}

TEST(VectorLoops, activations) {
  for (const uint64_t n : kSizes) {
    const std::vector<float> gate = normals(3, n, 6), up = normals(4, n, 6);
    const auto silu = same_everywhere([&](const VectorLoops& loops) {
      std::vector<float> out(n);
      loops.silu_mul(gate.data(), up.data(), n, out.data());
      return out;
    });
    const auto clamped = same_everywhere([&](const VectorLoops& loops) {
      std::vector<float> out(n);
      loops.clamped_swiglu(gate.data(), up.data(), n, 7, 1.702F, out.data());
      return out;
    });
    for (uint64_t i = 0; i < n; ++i) {
      const double g = static_cast<double>(gate[i]), u = static_cast<double>(up[i]);
      const double wanted = g / (1 + std::exp(-g)) * u;
      EXPECT_NEAR(silu[i], wanted, 1e-6 * (1 + std::abs(wanted)));
      const double below = std::min(g, 7.0), inside = std::clamp(u, -7.0, 7.0);
      const double limited = below / (1 + std::exp(-1.702 * below)) * (inside + 1);
      EXPECT_NEAR(clamped[i], limited, 1e-6 * (1 + std::abs(limited)));
    }
  }
}

TEST(VectorLoops, exponentials_of_all_sizes) {
  std::vector<float> x;
  for (int i = -12000; i <= 12000; ++i) x.push_back(static_cast<float>(i) * 0.01F);
  const auto got = same_everywhere([&](const VectorLoops& loops) {
    std::vector<float> out = x;
    loops.sigmoid(out.data(), out.size());
    return out;
  });
  for (size_t i = 0; i < x.size(); ++i) {
    const double wanted = 1 / (1 + std::exp(-static_cast<double>(x[i])));
    // Below -88 the sum of e^88 is what is left.
    EXPECT_NEAR(got[i], wanted, 2e-7 * wanted + 7e-39) << x[i];
  }
  std::vector<float> ends = {0, 88, -88, kInfinity, -kInfinity, std::nanf("")};
  avx512_vector_loops().sigmoid(ends.data(), best_isa() == Isa::kAvx512 ? ends.size() : 0);
  if (best_isa() != Isa::kAvx512) scalar_vector_loops().sigmoid(ends.data(), ends.size());
  EXPECT_EQ(ends[0], 0.5F);
  EXPECT_EQ(ends[3], 1.0F);
  EXPECT_LT(ends[4], 1e-37F);
  EXPECT_TRUE(std::isnan(ends[5]));
}

TEST(VectorLoops, rotation_keeps_lengths_and_adds_angles) {
  for (const uint64_t half : {uint64_t{1}, uint64_t{16}, uint64_t{20}, uint64_t{32}}) {
    const std::vector<float> x = normals(5, 2 * half);
    std::vector<float> cos(half), sin(half);
    for (uint64_t i = 0; i < half; ++i) {
      cos[i] = static_cast<float>(std::cos(0.3 * static_cast<double>(i + 1)));
      sin[i] = static_cast<float>(std::sin(0.3 * static_cast<double>(i + 1)));
    }
    const auto got = same_everywhere([&](const VectorLoops& loops) {
      std::vector<float> out = x;
      loops.rotate(out.data(), cos.data(), sin.data(), half);
      return out;
    });
    for (uint64_t i = 0; i < half; ++i) {
      const double angle = std::atan2(static_cast<double>(got[i + half]), static_cast<double>(got[i])) -
                           std::atan2(static_cast<double>(x[i + half]), static_cast<double>(x[i]));
      EXPECT_NEAR(std::remainder(angle - 0.3 * static_cast<double>(i + 1), 2 * 3.14159265358979), 0, 1e-5);
      EXPECT_NEAR(std::hypot(got[i], got[i + half]), std::hypot(x[i], x[i + half]), 1e-5);
    }
  }
}

TEST(VectorLoops, softmax) {
  for (const uint64_t n : kSizes) {
    const std::vector<float> x = normals(6, n, 5);
    const auto got = same_everywhere([&](const VectorLoops& loops) {
      std::vector<float> out = x;
      loops.softmax(out.data(), n);
      return out;
    });
    double sum = 0;
    for (const float v : x) sum += std::exp(static_cast<double>(v));
    for (uint64_t i = 0; i < n; ++i) EXPECT_NEAR(got[i], std::exp(static_cast<double>(x[i])) / sum, 1e-6);
  }
}

TEST(VectorLoops, largest_leaves_out_what_is_no_number) {
  for (const uint64_t n : kSizes) {
    std::vector<float> x = normals(11, n);
    const float wanted = *std::max_element(x.begin(), x.end());
    for (const VectorLoops* loops : tables()) EXPECT_EQ(loops->largest(x.data(), n), wanted) << n;
    for (float& value : x) value = value == wanted ? value : std::nanf("");
    for (const VectorLoops* loops : tables()) EXPECT_EQ(loops->largest(x.data(), n), wanted) << n;
  }
  EXPECT_EQ(vector_loops().largest(nullptr, 0), -kInfinity);
}

// Rows of two models of a language, roughly: far apart in most places, close in all.
TEST(VectorLoops, sums_of_two_rows_of_logits) {
  for (const uint64_t n : {uint64_t{1}, uint64_t{17}, uint64_t{64}, uint64_t{50001}}) {
    const std::vector<float> a = normals(12, n, 6);
    std::vector<float> b = normals(13, n, 0.1);
    for (uint64_t i = 0; i < n; ++i) b[i] += a[i];
    const float top_a = vector_loops().largest(a.data(), n), top_b = vector_loops().largest(b.data(), n);
    long double sum_a = 0, sum_b = 0, apart = 0;
    for (uint64_t i = 0; i < n; ++i) {
      const long double x = static_cast<long double>(a[i]), y = static_cast<long double>(b[i]);
      const long double e = std::exp(x - static_cast<long double>(top_a));
      sum_a += e;
      sum_b += std::exp(y - static_cast<long double>(top_b));
      apart += e * (x - y);
    }
    const SoftmaxSums got = vector_loops().softmax_sums(a.data(), top_a, b.data(), top_b, n);
    const auto near = [](double value, long double wanted) {
      return std::abs(static_cast<long double>(value) - wanted) <= 1e-14L * std::abs(wanted);
    };
    EXPECT_TRUE(near(got.a, sum_a) && near(got.b, sum_b)) << n;
    EXPECT_LE(std::abs(static_cast<long double>(got.apart) - apart), 1e-14L * sum_a) << n;
    EXPECT_EQ(vector_loops().exp_sum(a.data(), n, top_a), got.a) << n;
    for (const VectorLoops* loops : tables()) {
      const SoftmaxSums other = loops->softmax_sums(a.data(), top_a, b.data(), top_b, n);
      EXPECT_TRUE(other.a == got.a && other.b == got.b && other.apart == got.apart) << isa_name(loops->isa) << n;
      EXPECT_EQ(loops->exp_sum(a.data(), n, top_a), got.a) << isa_name(loops->isa) << n;
    }
  }
}

TEST(VectorLoops, sums_of_logits_that_are_no_numbers) {
  for (const VectorLoops* loops : tables()) {
    const std::vector<float> masked = {0, -kInfinity, -1}, plain = {0, 5, -1}, nan = {0, std::nanf(""), 1};
    const SoftmaxSums both = loops->softmax_sums(masked.data(), 0, masked.data(), 0, 3);
    EXPECT_EQ(both.apart, 0);
    EXPECT_NEAR(both.a, 1 + std::exp(-1.0), 1e-15);
    EXPECT_EQ(loops->softmax_sums(masked.data(), 0, plain.data(), 5, 3).apart, 0);          // no weight, no matter
    EXPECT_EQ(loops->softmax_sums(plain.data(), 5, masked.data(), 0, 3).apart, kInfinity);  // what b never says
    EXPECT_TRUE(std::isnan(loops->exp_sum(nan.data(), 3, 1)));
    EXPECT_EQ(loops->exp_sum(std::vector<float>{0, -709, -1e30F}.data(), 3, 0), 1);
  }
}

// Some rows over some pages with a window and a sink, what is not seen full of NaN.
struct AttentionCase {
  uint64_t rows, key_dim, value_dim, pages, begin, end;
  bool sink;
};

std::vector<float> run_attention(const VectorLoops& loops, const AttentionCase& c, std::vector<double>* exact) {
  const uint64_t tokens = c.pages * kPageTokens;
  const std::vector<float> q = normals(7, c.rows * c.key_dim, 0.2), k = normals(8, tokens * c.key_dim),
                           v = normals(9, tokens * c.value_dim);
  const float sink = 0.4F;
  std::vector<float> largest(c.rows, c.sink ? sink : -kInfinity), sum(c.rows, c.sink ? 1.0F : 0.0F),
      out(c.rows * c.value_dim);
  const AttentionState state{c.rows, c.key_dim, c.value_dim, q.data(), largest.data(), sum.data(), out.data()};
  for (uint64_t p = 0; p < c.pages; ++p) {
    const uint64_t first = p * kPageTokens;
    const uint64_t begin = std::clamp(c.begin, first, first + kPageTokens) - first;
    const uint64_t end = std::clamp(c.end, first, first + kPageTokens) - first;
    if (begin >= end) continue;
    std::vector<float> keys(c.key_dim * kPageTokens, std::nanf("")), values(kPageTokens * c.value_dim, std::nanf(""));
    for (uint64_t t = begin; t < end; ++t) {
      for (uint64_t d = 0; d < c.key_dim; ++d) keys[d * kPageTokens + t] = k[(first + t) * c.key_dim + d];
      std::copy_n(v.data() + (first + t) * c.value_dim, c.value_dim, values.data() + t * c.value_dim);
    }
    loops.attend(state, {.keys = keys.data(), .values = values.data(), .begin = begin, .end = end});
  }
  for (uint64_t r = 0; r < c.rows; ++r) loops.scale(out.data() + r * c.value_dim, 1 / sum[r], c.value_dim);
  exact->assign(c.rows * c.value_dim, 0);
  for (uint64_t r = 0; r < c.rows; ++r) {
    double total = c.sink ? std::exp(static_cast<double>(sink)) : 0;
    for (uint64_t t = c.begin; t < c.end; ++t) {
      double score = 0;
      for (uint64_t d = 0; d < c.key_dim; ++d) {
        score += static_cast<double>(q[r * c.key_dim + d]) * static_cast<double>(k[t * c.key_dim + d]);
      }
      total += std::exp(score);
      for (uint64_t d = 0; d < c.value_dim; ++d) {
        (*exact)[r * c.value_dim + d] += std::exp(score) * static_cast<double>(v[t * c.value_dim + d]);
      }
    }
    for (uint64_t d = 0; d < c.value_dim; ++d) (*exact)[r * c.value_dim + d] /= total;
  }
  return out;
}

TEST(VectorLoops, attention_is_softmax_of_scores_times_values) {
  for (const AttentionCase& c :
       {AttentionCase{1, 16, 16, 1, 0, 1, false}, AttentionCase{8, 64, 64, 3, 0, 150, true},
        AttentionCase{5, 80, 80, 2, 37, 111, false}, AttentionCase{6, 24, 16, 4, 130, 256, true}}) {
    std::vector<double> exact;
    const auto got = same_everywhere([&](const VectorLoops& loops) { return run_attention(loops, c, &exact); });
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], exact[i], 2e-6) << i;
  }
}

TEST(VectorLoops, expansion_gives_every_codes_value) {
  std::vector<uint8_t> e4m3(256);
  for (size_t i = 0; i < e4m3.size(); ++i) e4m3[i] = static_cast<uint8_t>(i);
  std::vector<uint16_t> bf16(65536);
  for (size_t i = 0; i < bf16.size(); ++i) bf16[i] = static_cast<uint16_t>(i);
  for (const VectorLoops* loops : tables()) {
    for (const uint64_t n : {uint64_t{256}, uint64_t{250}, uint64_t{3}}) {
      std::vector<float> out(n);
      loops->expand(CacheElement::kE4M3, e4m3.data(), n, out.data());
      for (uint64_t i = 0; i < n; ++i) {
        const float wanted = e4m3_decode(e4m3[i]);
        EXPECT_EQ(std::isnan(out[i]), std::isnan(wanted)) << i;
        if (!std::isnan(wanted)) {
          EXPECT_EQ(float_bits(out[i]), float_bits(wanted)) << i;
        }
      }
    }
    std::vector<float> out(bf16.size());
    loops->expand(CacheElement::kBF16, bf16.data(), bf16.size(), out.data());
    for (size_t i = 0; i < bf16.size(); ++i) ASSERT_EQ(float_bits(out[i]), static_cast<uint32_t>(i) << 16);
  }
}

// A page of one type as it lies, and the same page in float32.
struct StoredPage {
  StoredPage(CacheElement element, uint64_t key_dim, uint64_t value_dim)
      : keys_at(key_dim * kPageTokens * 2),
        values_at(value_dim * kPageTokens * 2),
        key_scales(normals(21, kPageTokens)),
        value_scales(normals(22, kPageTokens)),
        keys(key_dim * kPageTokens),
        values(value_dim * kPageTokens) {
    const auto fill = [&](uint64_t seed, std::vector<uint8_t>& at, uint64_t n) {
      const std::vector<float> x = normals(seed, n);
      for (uint64_t i = 0; i < n; ++i) {
        const uint16_t bits = bf16_encode(x[i]);
        if (element == CacheElement::kBF16) std::memcpy(&at[2 * i], &bits, 2);
        if (element == CacheElement::kE4M3) at[i] = e4m3_encode(x[i]);
      }
    };
    fill(23, keys_at, keys.size());
    fill(24, values_at, values.size());
    scalar_vector_loops().expand(element, keys_at.data(), keys.size(), keys.data());
    scalar_vector_loops().expand(element, values_at.data(), values.size(), values.data());
    if (element != CacheElement::kE4M3) return;
    for (size_t i = 0; i < keys.size(); ++i) keys[i] *= key_scales[i % kPageTokens];
    for (size_t i = 0; i < values.size(); ++i) values[i] *= value_scales[i / value_dim];
  }

  std::vector<uint8_t> keys_at, values_at;
  std::vector<float> key_scales, value_scales, keys, values;
};

std::vector<float> attend_once(const VectorLoops& loops, uint64_t rows, uint64_t key_dim, uint64_t value_dim,
                               const AttentionPage& page) {
  const std::vector<float> q = normals(25, rows * key_dim, 0.2);
  std::vector<float> largest(rows, 0.3F), sum(rows, 1), out = normals(26, rows * value_dim);
  loops.attend({rows, key_dim, value_dim, q.data(), largest.data(), sum.data(), out.data()}, page);
  out.insert(out.end(), sum.begin(), sum.end());
  out.insert(out.end(), largest.begin(), largest.end());
  return out;
}

TEST(VectorLoops, a_page_as_it_lies_gives_the_bits_of_an_expanded_one) {
  constexpr uint64_t kKeyDim = 40, kValueDim = 48;  // three vectors: a block of two and one alone
  for (const CacheElement element : {CacheElement::kBF16, CacheElement::kE4M3}) {
    const StoredPage stored(element, kKeyDim, kValueDim);
    for (uint64_t rows = 1; rows <= 17; ++rows) {
      for (const auto& [begin, end] : {std::pair<uint64_t, uint64_t>{0, 64}, {0, 1}, {13, 50}}) {
        AttentionPage flat{.keys = stored.keys.data(), .values = stored.values.data(), .begin = begin, .end = end};
        AttentionPage page{.element = element,
                           .keys = stored.keys_at.data(),
                           .values = stored.values_at.data(),
                           .key_scales = stored.key_scales.data(),
                           .value_scales = stored.value_scales.data(),
                           .begin = begin,
                           .end = end};
        const auto wanted = attend_once(scalar_vector_loops(), rows, kKeyDim, kValueDim, flat);
        const auto got = same_everywhere(
            [&](const VectorLoops& loops) { return attend_once(loops, rows, kKeyDim, kValueDim, page); });
        expect_same_bits(got, wanted, std::to_string(rows));
      }
    }
  }
}

}  // namespace
}  // namespace nibble
