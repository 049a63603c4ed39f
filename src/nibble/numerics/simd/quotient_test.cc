// Quotients where a wrong last bit shows: vector loops divide by a corrected reciprocal, the scalar one divides.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
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

}  // namespace
}  // namespace nibble::simd
