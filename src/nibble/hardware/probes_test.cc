#include "nibble/hardware/probes.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "nibble/hardware/memory_probe.h"
#include "nibble/hardware/rate.h"

namespace nibble {
namespace {

// The tables that this processor can run.
std::vector<Probes> runnable() {
  std::vector<Probes> all{scalar_probes()};
  if (best_isa() >= Isa::kAvx2) all.push_back(avx2_probes());
  if (best_isa() >= Isa::kAvx512) all.push_back(avx512_probes());
  return all;
}

// The exclusive or of all words, however they are read: every byte is.
TEST(Probes, ReadsSeeEveryWord) {
  std::vector<uint64_t> words(4 * kReadStep / sizeof(uint64_t));
  for (size_t changed = 0; changed < words.size(); changed += 61) {
    words[changed] = changed + 1;
    for (const Probes& probes : runnable()) {
      for (const ReadProbe& read : probes.reads) {
        const auto* bytes = reinterpret_cast<const std::byte*>(words.data());
        ASSERT_EQ(read.run(bytes, words.size() * sizeof(uint64_t)), changed + 1)
            << isa_name(probes.isa) << ", " << read.what;
      }
    }
    words[changed] = 0;
  }
}

struct alignas(64) ProbeState {
  std::byte bytes[kProbeStateBytes];
};

template <typename T>
std::vector<T> after_steps(const ArithmeticProbe& probe, uint64_t steps) {
  ProbeState state{};
  if (probe.run != nullptr) probe.run(steps, state.bytes);
  std::vector<T> values(kProbeStateBytes / sizeof(T));
  std::memcpy(values.data(), state.bytes, kProbeStateBytes);
  // A table of narrower vectors uses the front of the state only.
  return values;
}

// Every step of every chain is carried out: from zero, sums grow by what one step adds.
TEST(Probes, ArithmeticCountsItsSteps) {
  for (const Probes& probes : runnable()) {
    SCOPED_TRACE(isa_name(probes.isa));
    const auto f32 = after_steps<float>(probes.f32, 2);
    const size_t lanes = static_cast<size_t>(probes.f32.operations) / 2;
    for (size_t i = 0; i < f32.size(); ++i) ASSERT_EQ(f32[i], i < lanes ? 1.5F : 0.0F) << i;
    if (probes.bf16.run != nullptr) {
      for (const float sum : after_steps<float>(probes.bf16, 3)) ASSERT_EQ(sum, 6.0F);
    }
    if (probes.int8.run != nullptr) {
      const auto sums = after_steps<int32_t>(probes.int8, 3);
      const size_t used = static_cast<size_t>(probes.int8.operations) / 8;
      for (size_t i = 0; i < sums.size(); ++i) ASSERT_EQ(sums[i], i < used ? 12 : 0) << i;
    }
  }
}

TEST(RateOf, AddsTheThreadsAndEnds) {
  // Each call does 1 unit; whatever a call takes, two threads that sleep do about twice as much as one.
  const auto nap = [](int) {
    ::usleep(1000);
    return 1.0;
  };
  const double one = rate_of(1, 0.05, nap);
  const double two = rate_of(2, 0.05, nap);
  EXPECT_GT(one, 0);
  EXPECT_LT(one, 1000);
  EXPECT_GT(two, 0);
  EXPECT_LT(two, 2000);
  const MeasuredRange range = rates_of(3, 1, 0.002, nap);
  EXPECT_GT(range.low, 0);
  EXPECT_LE(range.low, range.high);
}

TEST(MemoryReadRate, MoreThreadsThanMemory) {
  const MemoryRate rate = memory_read_rate(scalar_probes(), kProbePage, 0.001, 3);
  EXPECT_EQ(rate.bytes, kProbePage);
  EXPECT_GT(rate.read.low, 0);
}

TEST(MemoryReadRate, FillsWhatItMustHoweverShortTheTime) {
  EXPECT_EQ(memory_read_rate(scalar_probes(), 8 * kProbePage, 1e-9, 1, 7 * kProbePage).bytes, 8 * kProbePage);
  EXPECT_LT(memory_read_rate(scalar_probes(), 8 * kProbePage, 1e-9, 1).bytes, 8 * kProbePage);
}

}  // namespace
}  // namespace nibble
