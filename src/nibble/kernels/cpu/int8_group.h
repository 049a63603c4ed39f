// One group of activations to INT8. All instruction sets give the same codes: scale, quotient and rounding are single
// operations of float32.
#pragma once

#include <cstdint>

namespace nibble {

struct Int8Group {
  float scale = 0;
  int32_t sum = 0;  // of the codes
};

// Reads `group` floats, writes as many codes; `interleaved`: each 8 in the order 0 2 4 6 1 3 5 7. A group of zeros has
// codes 0 and a positive scale; one that is not finite has scale NaN and codes 127 (numerics/activations.h).
using Int8GroupLoop = Int8Group (*)(const float* x, int8_t* codes);

// For groups of 16 and 32, the quickest of this processor.
Int8GroupLoop int8_group_loop(uint64_t group, bool interleaved);
// Those of one instruction set, for int8_group_loop() and tests; null if `group` is not 16 or 32.
Int8GroupLoop int8_group_loop_reference(uint64_t group, bool interleaved);
Int8GroupLoop int8_group_loop_avx512(uint64_t group, bool interleaved);

}  // namespace nibble
