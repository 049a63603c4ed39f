// One element of a block, to its code and back: what the quantizer, the decoder, fake quantization and kernels share.
//
//   E2M1, E4M3   code = encode(x / divisor)                              value = decode(code) * multiplier
//   INT4, INT8   q = RNE(clamp(x / divisor + zero, low, high))           value = (q - zero) * multiplier
//
// each operation rounded to float32. INT4 codes are q + 8, INT8 codes the byte of q.
#pragma once

#include <cstdint>

#include "nibble/numerics/codec/bf16.h"
#include "nibble/numerics/codec/e2m1.h"
#include "nibble/numerics/codec/e4m3.h"
#include "nibble/numerics/codec/f16.h"
#include "nibble/numerics/codec/int4.h"
#include "nibble/numerics/format.h"

namespace nibble {

// What the elements of one block have in common. `divisor` and `multiplier` are the block's effective scale (second
// level included); they differ only where a library of the field quantizes with another number than it stores.
struct BlockCoding {
  float divisor = 1, multiplier = 1;
  float zero = 0;           // integer elements: signed zero point, -8..7
  float low = 0, high = 0;  // integer elements: range of q
};

enum class Ties : uint8_t {
  kEven,
  kTowardZero,        // E2M1 of ModelOpt's MXFP4 and of ggml
  kUpWithReciprocal,  // INT4 of ggml's Q4_0: trunc(x * (1 / divisor) + 8.5)
};

// How the quotient becomes a code. The defaults are nibble's own; the rest serves BitExact.
struct Arithmetic {
  Element quotient = Element::kF32;  // kBF16, kF16: quotients and sums are rounded to the weights' type
  ZeroSign zero_sign = ZeroSign::kCanonical;
  Ties ties = Ties::kEven;
  friend constexpr bool operator==(const Arithmetic&, const Arithmetic&) = default;
};

NIBBLE_HD constexpr float round_to(Element type, float x) {
  return type == Element::kBF16 ? bf16_round(x) : type == Element::kF16 ? f16_round(x) : x;
}

NIBBLE_HD constexpr uint8_t encode_integer(float x, const BlockCoding& block, const Arithmetic& arithmetic,
                                           int offset) {
  if (arithmetic.ties == Ties::kUpWithReciprocal) {
    const float shifted = x * (1.0f / block.divisor) + 8.5f;  // positive: |x / divisor| <= 8
    const int code = static_cast<int>(shifted);
    return static_cast<uint8_t>(code < 15 ? code : 15);
  }
  const float t = round_to(arithmetic.quotient, round_to(arithmetic.quotient, x / block.divisor) + block.zero);
  return static_cast<uint8_t>(round_to_int(t, block.low, block.high) + offset);
}

// `element` is kE2M1, kE4M3, kInt4 or kInt8.
NIBBLE_HD constexpr uint8_t encode_element(Element element, float x, const BlockCoding& block,
                                           const Arithmetic& arithmetic = {}) {
  switch (element) {
    case Element::kE2M1: {
      const float t = round_to(arithmetic.quotient, x / block.divisor);
      return arithmetic.ties == Ties::kTowardZero ? e2m1_encode_ties_down(t, arithmetic.zero_sign)
                                                  : e2m1_encode(t, arithmetic.zero_sign);
    }
    case Element::kE4M3: return e4m3_encode(round_to(arithmetic.quotient, x / block.divisor), arithmetic.zero_sign);
    case Element::kInt4: return encode_integer(x, block, arithmetic, kInt4Offset);
    case Element::kInt8: return encode_integer(x, block, arithmetic, 0);
    default: return 0;
  }
}

// Value of a code of any coded element but kUint4, which has a minimum instead of a zero point.
NIBBLE_HD constexpr float decode_element(Element element, uint8_t code, const BlockCoding& block) {
  switch (element) {
    case Element::kE2M1: return e2m1_decode(code) * block.multiplier;
    case Element::kE4M3: return e4m3_decode(code) * block.multiplier;
    case Element::kInt4: return (static_cast<float>(int4_decode(code)) - block.zero) * block.multiplier;
    case Element::kInt8: return (static_cast<float>(static_cast<int8_t>(code)) - block.zero) * block.multiplier;
    default: return 0;
  }
}

}  // namespace nibble
