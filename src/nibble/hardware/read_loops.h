// Reading memory in three ways, over a vector type V of its instruction set (zero, load, mixed, folded). Which one is
// the fastest depends on the processor's prefetchers and on how many threads run.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "nibble/hardware/probes.h"

namespace nibble {

// One stream from front to back.
template <typename V>
uint64_t read_in_order(const std::byte* data, size_t bytes) {
  V a = V::zero(), b = V::zero(), c = V::zero(), d = V::zero();
  for (size_t i = 0; i < bytes; i += 4 * V::kBytes) {
    a = V::mixed(a, V::load(data + i));
    b = V::mixed(b, V::load(data + i + V::kBytes));
    c = V::mixed(c, V::load(data + i + 2 * V::kBytes));
    d = V::mixed(d, V::load(data + i + 3 * V::kBytes));
  }
  return V::folded(V::mixed(V::mixed(a, b), V::mixed(c, d)));
}

// Four streams a quarter apart: more prefetchers at work, more banks open.
template <typename V>
uint64_t read_four_streams(const std::byte* data, size_t bytes) {
  const size_t quarter = bytes / 4;
  V a = V::zero(), b = V::zero(), c = V::zero(), d = V::zero();
  for (size_t i = 0; i < quarter; i += V::kBytes) {
    a = V::mixed(a, V::load(data + i));
    b = V::mixed(b, V::load(data + i + quarter));
    c = V::mixed(c, V::load(data + i + 2 * quarter));
    d = V::mixed(d, V::load(data + i + 3 * quarter));
  }
  return V::folded(V::mixed(V::mixed(a, b), V::mixed(c, d)));
}

// One stream, its lines asked for two pages ahead. Asking beyond the end is harmless: a prefetch never faults.
template <typename V>
uint64_t read_prefetched(const std::byte* data, size_t bytes) {
  constexpr size_t kLine = 64;
  constexpr size_t kAhead = 8192;
  constexpr size_t kBlock = 4 * V::kBytes > kLine ? 4 * V::kBytes : kLine;
  V a = V::zero(), b = V::zero();
  for (size_t i = 0; i < bytes; i += kBlock) {
    for (size_t line = 0; line < kBlock; line += kLine) __builtin_prefetch(data + i + kAhead + line, 0, 0);
    for (size_t j = 0; j < kBlock; j += 2 * V::kBytes) {
      a = V::mixed(a, V::load(data + i + j));
      b = V::mixed(b, V::load(data + i + j + V::kBytes));
    }
  }
  return V::folded(V::mixed(a, b));
}

template <typename V>
constexpr std::array<ReadProbe, 3> read_probes() {
  return {{{"one stream", read_in_order<V>},
           {"four streams", read_four_streams<V>},
           {"one stream, prefetched", read_prefetched<V>}}};
}

}  // namespace nibble
