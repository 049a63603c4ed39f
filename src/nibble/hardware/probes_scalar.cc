// For any x86-64 processor, and any other one: the compiler's own vectors of 16 bytes.
#include <cstring>

#include "nibble/hardware/probes.h"
#include "nibble/hardware/read_loops.h"

namespace nibble {
namespace {

using Words = uint64_t __attribute__((vector_size(16)));
using Floats = float __attribute__((vector_size(16)));

struct ReadVector {
  static constexpr size_t kBytes = 16;
  Words words;

  static ReadVector zero() { return {Words{0, 0}}; }
  static ReadVector load(const std::byte* at) {
    ReadVector value;
    std::memcpy(&value.words, at, kBytes);
    return value;
  }
  static ReadVector mixed(const ReadVector& a, const ReadVector& b) { return {a.words ^ b.words}; }
  static uint64_t folded(const ReadVector& a) { return a.words[0] ^ a.words[1]; }
};

// Twelve chains of a multiplication and an addition: two operations each for four numbers.
void multiply_add(uint64_t steps, std::byte* state) {
  Floats s[kChains];
  std::memcpy(s, state, sizeof(s));
  const Floats half{0.5F, 0.5F, 0.5F, 0.5F};
  const Floats one{1, 1, 1, 1};
  for (uint64_t i = 0; i < steps; ++i) {
    s[0] = s[0] * half + one;
    s[1] = s[1] * half + one;
    s[2] = s[2] * half + one;
    s[3] = s[3] * half + one;
    s[4] = s[4] * half + one;
    s[5] = s[5] * half + one;
    s[6] = s[6] * half + one;
    s[7] = s[7] * half + one;
    s[8] = s[8] * half + one;
    s[9] = s[9] * half + one;
    s[10] = s[10] * half + one;
    s[11] = s[11] * half + one;
  }
  std::memcpy(state, s, sizeof(s));
}

}  // namespace

Probes scalar_probes() {
  return {Isa::kScalar,
          read_probes<ReadVector>(),
          {"multiplications and additions of 4 float32", kChains * 4 * 2.0, multiply_add},
          {},
          {}};
}

}  // namespace nibble
