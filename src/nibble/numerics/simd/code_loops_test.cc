// The loops over stored codes give the scalar bytes, whatever their length.
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "nibble/base/rng.h"
#include "nibble/numerics/simd/isa_for_test.h"
#include "nibble/numerics/simd/kernels.h"

namespace nibble::simd {
namespace {

std::vector<uint8_t> random_bytes(uint64_t count) {
  std::vector<uint8_t> bytes(count);
  for (uint64_t i = 0; i < count; ++i) bytes[i] = static_cast<uint8_t>(random_bits(11, i));
  return bytes;
}

constexpr uint8_t kGuard = 0xa5;

TEST(CodeLoops, NibbleMaxima) {
  const auto codes = random_bytes(200);
  std::vector<uint8_t> table(16);
  for (size_t c = 0; c < 16; ++c) table[c] = static_cast<uint8_t>(random_bits(12, c));
  for (const Isa isa : vector_isas()) {
    const ScopedIsa scope(isa);
    for (uint64_t count = 0; count <= codes.size(); ++count) {
      std::vector<uint8_t> found(count + 1, kGuard);
      kernels().nibble_maxima(codes.data(), count, table.data(), found.data());
      for (uint64_t i = 0; i < count; ++i)
        ASSERT_EQ(found[i], std::max(table[codes[i] % 16], table[codes[i] / 16])) << count << " " << i;
      ASSERT_EQ(found[count], kGuard);
    }
  }
}

TEST(CodeLoops, PairMaxima) {
  const auto bytes = random_bytes(400);
  for (const Isa isa : vector_isas()) {
    const ScopedIsa scope(isa);
    for (uint64_t count = 0; count <= bytes.size() / 2; ++count) {
      std::vector<uint8_t> found(count + 1, kGuard);
      kernels().pair_maxima(bytes.data(), count, found.data());
      for (uint64_t i = 0; i < count; ++i)
        ASSERT_EQ(found[i], std::max(bytes[2 * i], bytes[2 * i + 1])) << count << " " << i;
      ASSERT_EQ(found[count], kGuard);
    }
  }
}

}  // namespace
}  // namespace nibble::simd
