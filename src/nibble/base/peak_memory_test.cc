#include "nibble/base/peak_memory.h"

#include <gtest/gtest.h>

#include <memory>

namespace nibble {
namespace {

TEST(PeakMemory, grows_with_what_is_touched_and_starts_anew) {
  constexpr uint64_t kBytes = uint64_t{64} << 20;
  const uint64_t before = peak_memory_bytes();
  if (before == 0) GTEST_SKIP() << "the system does not say";
  {
    const auto block = std::make_unique<volatile char[]>(kBytes);
    for (uint64_t i = 0; i < kBytes; i += 4096) block[i] = 1;
    EXPECT_GE(peak_memory_bytes(), kBytes);
  }
  const uint64_t with_block = peak_memory_bytes();
  forget_peak_memory();
  EXPECT_LE(peak_memory_bytes(), with_block);
}

}  // namespace
}  // namespace nibble
