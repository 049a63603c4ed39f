// The loops that calibrate() times: memory read in several ways, and each kind of dot product that the processor has,
// in as many independent chains as hide its latency. One table per instruction set; probes() picks by best_isa().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "nibble/base/cpu_features.h"

namespace nibble {

// `bytes` is a multiple of kReadStep. Returns something that depends on all of them, so that none is left out.
struct ReadProbe {
  const char* what;
  uint64_t (*run)(const std::byte* data, size_t bytes);
};
inline constexpr size_t kReadStep = 4096;

// `state` holds kProbeStateBytes of small numbers, aligned to 64 bytes, from which the chains start and to which they
// return: a compiler that knew them could compute one chain for all. Null `run`: the processor has no such instruction.
struct ArithmeticProbe {
  const char* what = "";
  double operations = 0;  // of a step on one core
  void (*run)(uint64_t steps, std::byte* state) = nullptr;
};
inline constexpr size_t kChains = 12;
inline constexpr size_t kProbeStateBytes = kChains * 64;

struct Probes {
  Isa isa = Isa::kScalar;
  std::array<ReadProbe, 3> reads;
  ArithmeticProbe f32, bf16, int8;
};

Probes probes();

// Those of one instruction set, whatever the processor has; only for probes() and its test.
Probes scalar_probes();
Probes avx2_probes();
Probes avx512_probes();

}  // namespace nibble
