// Quotients where a wrong last bit shows: vector loops divide by a corrected reciprocal, the scalar one divides.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "nibble/base/rng.h"
#include "nibble/numerics/codec/bits.h"
#include "nibble/numerics/simd/isa_for_test.h"
#include "nibble/numerics/simd/kernels.h"

namespace nibble::simd {
namespace {

constexpr uint64_t kCols = 2048, kBlock = 32;

struct Encoded {
  std::vector<std::byte> codes = std::vector<std::byte>(kCols);
  RowSums sums;
};

Encoded encode_with(Isa isa, EncodeJob job) {
  const ScopedIsa scope(isa);
  Encoded encoded;
  job.codes = encoded.codes.data();
  kernels().encode(job, &encoded.sums);
  return encoded;
}

// Divisors over `binades` around 1 with random mantissas; every fourth has all bits set, or none.
float divisor(uint64_t seed, uint64_t at, int binades) {
  const uint64_t bits = random_bits(seed, at);
  auto mantissa = static_cast<uint32_t>(bits & 0x7fffff);
  if ((bits >> 23 & 3) == 0) mantissa = (bits >> 25 & 1) != 0 ? 0x7fffff : 0;
  const int exponent = static_cast<int>(bits >> 32) % binades - binades / 2;
  return std::ldexp(bits_float(0x3f800000u | mantissa), exponent);
}

// Up to two steps of float32 beside an odd multiple of 1/16 of the divisor: ties of every element lie on such.
float beside_a_tie(float divisor, uint64_t bits) {
  const auto odd = static_cast<float>(2 * (bits & 127) + 1);
  const float tie = divisor * odd / 16;
  const float near = bits_float(float_bits(tie) + static_cast<uint32_t>(bits >> 8 & 7) - 3);
  return (bits >> 20 & 1) != 0 ? -near : near;
}

void expect_equal_codes(Element element, Element quotient, int binades, uint64_t seed) {
  std::vector<float> x(kCols), divisors(kCols / kBlock), reciprocals(divisors.size());
  for (uint64_t b = 0; b < divisors.size(); ++b) {
    divisors[b] = divisor(seed, b, binades);
    reciprocals[b] = 1.0f / divisors[b];
  }
  for (uint64_t k = 0; k < kCols; ++k) x[k] = beside_a_tie(divisors[k / kBlock], random_bits(seed + 1, k));
  EncodeJob job;
  job.element = element;
  job.arithmetic.quotient = quotient;
  job.x = x.data();
  job.cols = kCols;
  job.block_cols = kBlock;
  job.divisor = job.multiplier = divisors.data();
  job.low = element == Element::kInt8 ? -128.0f : -8.0f;
  job.high = element == Element::kInt8 ? 127.0f : 7.0f;
  const Encoded scalar = encode_with(Isa::kScalar, job);
  job.reciprocal = reciprocals.data();
  for (const Isa isa : vector_isas()) {
    const Encoded vector = encode_with(isa, job);
    ASSERT_TRUE(vector.codes == scalar.codes) << isa_name(isa) << " seed " << seed;
    for (int lane = 0; lane < 8; ++lane) ASSERT_EQ(vector.sums.noise[lane], scalar.sums.noise[lane]);
  }
}

TEST(Quotient, BesideTiesOfEveryElement) {
  for (const Element element : {Element::kE2M1, Element::kE4M3, Element::kInt4, Element::kInt8}) {
    for (const Element quotient : {Element::kF32, Element::kBF16}) {
      for (uint64_t seed = 0; seed < 400; ++seed) expect_equal_codes(element, quotient, 40, 2 * seed);
    }
  }
}

// A tie of E4M3 is every sixteenth of a binade: 6 million quotients within two steps of one.
TEST(Quotient, MillionsOfThem) {
  for (uint64_t seed = 0; seed < 3000; ++seed) expect_equal_codes(Element::kE4M3, Element::kF32, 8, 9000 + 2 * seed);
}

// ---- BF16 columns, whose quotients come from a reciprocal in two parts

// Codes and sums of these pairs, each a block of 16 equal columns, must be those of the scalar reference.
struct Pair {
  float x, divisor;
};

void expect_equal_codes(const std::vector<Pair>& pairs, Element element) {
  constexpr uint64_t kWidth = 16;
  std::vector<uint16_t> x;
  std::vector<float> divisors, high, rest;
  for (const Pair& pair : pairs) {
    x.insert(x.end(), kWidth, static_cast<uint16_t>(float_bits(pair.x) >> 16));
    divisors.push_back(pair.divisor);
    const double inverse = 1.0 / static_cast<double>(pair.divisor);
    high.push_back(static_cast<float>(inverse));
    rest.push_back(static_cast<float>(inverse - static_cast<double>(high.back())));
    ASSERT_EQ(high.back(), 1.0f / pair.divisor);
  }
  EncodeJob job;
  job.element = element;
  job.bf16 = reinterpret_cast<const std::byte*>(x.data());
  job.cols = x.size();
  job.block_cols = kWidth;
  job.divisor = job.multiplier = divisors.data();
  job.low = element == Element::kInt8 ? -128.0f : -8.0f;
  job.high = element == Element::kInt8 ? 127.0f : 7.0f;
  std::vector<std::byte> expected(x.size()), found(x.size());
  job.codes = expected.data();
  scalar_kernels().encode(job, nullptr);
  job.reciprocal = high.data();
  job.reciprocal_rest = rest.data();
  job.codes = found.data();
  for (const Isa isa : vector_isas()) {
    const ScopedIsa scope(isa);
    kernels().encode(job, nullptr);
    ASSERT_EQ(std::memcmp(found.data(), expected.data(), found.size()), 0) << isa_name(isa);
  }
}

// Ties of the elements, by their significant bits: E2M1, E4M3 and INT4 have up to 5, INT8 has 8. Beside each tie lie
// two numbers of 25 bits that are in the middle between two float32 numbers; `middle` is one of them, or both times two
// below a power of two. Lists x of 8 bits and d of 24 so that x / d is closest to it, on both sides.
void add_hardest(uint64_t middle, std::vector<Pair>* pairs) {
  for (uint64_t x = 128; x < 256; ++x) {
    for (int shift = 0; shift < 56; ++shift) {
      const uint64_t d = (x << shift) / middle;
      if (d >= uint64_t{1} << 24) break;
      if (d < uint64_t{1} << 23) continue;
      for (uint64_t near = d - 1; near <= d + 2; ++near) {
        const auto quotient = static_cast<double>(x) / static_cast<double>(near);
        const int binade = std::ilogb(quotient);
        for (int exponent = -10; exponent <= 8; ++exponent) {
          pairs->push_back({std::ldexp(static_cast<float>(x), exponent - binade), static_cast<float>(near)});
        }
      }
    }
  }
}

TEST(ShortQuotient, HardestOfAll) {
  for (const int bits : {5, 8}) {
    std::vector<Pair> pairs;
    for (uint64_t tie = uint64_t{1} << (bits - 1); tie < uint64_t{1} << bits; ++tie) {
      const uint64_t whole = tie << (25 - bits);
      add_hardest(whole + 1, &pairs);
      add_hardest(whole - 1, &pairs);
      if (std::has_single_bit(tie)) add_hardest(2 * whole - 1, &pairs);
    }
    ASSERT_GT(pairs.size(), 100000u);
    if (bits == 8) {
      expect_equal_codes(pairs, Element::kInt8);
      continue;
    }
    for (const Element element : {Element::kE2M1, Element::kE4M3, Element::kInt4}) expect_equal_codes(pairs, element);
  }
}

// Every BF16 mantissa by random divisors, of which every fourth has all bits set, or none.
TEST(ShortQuotient, MillionsOfThem) {
  for (const Element element : {Element::kE2M1, Element::kE4M3, Element::kInt4, Element::kInt8}) {
    std::vector<Pair> pairs;
    for (uint64_t i = 0; i < 1000000; ++i) {
      const uint64_t bits = random_bits(77, i);
      const float mantissa = bits_float(0x3f800000u | static_cast<uint32_t>(bits & 127) << 16);
      const int exponent = static_cast<int>(bits >> 8) % 20 - 10;
      const float sign = (bits >> 40 & 1) != 0 ? -1.0f : 1.0f;
      const float d = divisor(78, i, 2);
      pairs.push_back({sign * std::ldexp(mantissa, exponent), d});
    }
    expect_equal_codes(pairs, element);
  }
}

}  // namespace
}  // namespace nibble::simd
