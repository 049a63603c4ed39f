// Encoding loops over a vector type V (vec_avx2.h, vec_avx512.h). Included by *_avx2.cc and *_avx512.cc alone.
//
// The arithmetic that makes them equal to the codecs bit for bit: adding 1.5 * 2^23 * step to t and subtracting it
// again rounds t to the nearest multiple of step, ties to even, and step follows from the exponent of t: half a
// binade's spacing for E2M1, an eighth for E4M3, with a floor where the format's subnormals begin. Saturation comes
// first: it cannot change the result, since the bounds are values of the format.
//
// Steps of 32 columns, which share one block, or two blocks of 16. What does not fit (other block sizes, columns at the
// end, rare arithmetic) goes to the scalar kernels.
#pragma once

#include "nibble/numerics/simd/always_inline.h"
#include "nibble/numerics/simd/kernels.h"

namespace nibble::simd {

inline constexpr uint64_t kStep = kSumStep;

// |2 * value| of E2M1 to its magnitude code; 13 is what stands for -0, the other gaps are never looked up.
inline constexpr uint8_t kE2m1OfDoubled[16] = {0, 1, 2, 3, 4, 0, 5, 0, 6, 0, 0, 0, 7, 0, 0, 0};

// How x / divisor is found; the result is the same. Division takes four to six times as long as what replaces it.
enum class Division : uint8_t {
  kDivide,
  kMultiply,  // by the exact reciprocal of a power of two
  kCorrect,   // by the rounded reciprocal, and corrected: see corrected_quotient()
  kTwoParts,  // by the reciprocal in two parts: see short_quotient()
};

// What is decided when a loop is compiled.
struct EncodeMode {
  Element quotient = Element::kF32;  // or kBF16
  bool signed_zeros = false;         // job.arithmetic.zero_sign is not kCanonical
  bool zero_points = false;          // job.zero is there
  Division division = Division::kDivide;
  bool bf16 = false;  // columns are read from job.bf16
};

template <typename V>
struct BlockVectors {
  typename V::F divisor, reciprocal, reciprocal_rest, multiplier, zero;
};

// A vector of codes before packing, and of decoded elements before the multiplication.
template <typename V>
struct Quantized {
  typename V::I code;
  typename V::F value;
};

template <typename V, Element kType>
NIBBLE_VEC typename V::F round_quotient(typename V::F t) {
  if constexpr (kType == Element::kBF16) {
    const auto bits = V::bits(t);
    const auto odd = V::and_int(V::template shift_right<16>(bits), V::set_int(1));
    const auto rounded = V::add_int(V::add_int(bits, V::set_int(0x7fff)), odd);
    return V::from_bits(V::and_int(rounded, V::set_int(static_cast<int32_t>(0xffff0000u))));
  } else {
    return t;
  }
}

// x / d, correctly rounded, from r = 1 / d rounded to nearest (Markstein, IBM J. Res. Dev. 34-1, 1990). x * r is within
// two units in the last place; one correction brings it within one, where x - q * d is exact, so that the second one
// rounds as division does. Holds while nothing underflows: has_safe_divisors() bounds d, and an x so small that its
// remainder is lost has a quotient under 2^-40, which every element rounds to zero. The sign of such a zero may be
// lost, so loops that keep it divide.
template <typename V>
NIBBLE_VEC typename V::F corrected_quotient(typename V::F x, typename V::F d, typename V::F r) {
  const auto near = V::mul(x, r);
  const auto faithful = V::mul_add(V::sub_product(x, near, d), r, near);
  return V::mul_add(V::sub_product(x, faithful, d), r, faithful);
}

// x / d for an x of 8 significant bits, from 1 / d in two parts that together are good to 2^-48 of it. The sum is
// rounded once and its error before that is under 2^-47 of it: too little to round otherwise than division does, unless
// x / d lies so close to the middle between two float32 numbers. An element's code depends on that only where one of
// the two is a tie. For 8 bits over 24 such quotients are few enough to be listed; ShortQuotient.HardestOfAll lists
// them and shows that all come out right. Bounds as in corrected_quotient().
template <typename V>
NIBBLE_VEC typename V::F short_quotient(typename V::F x, const BlockVectors<V>& block) {
  return V::mul_add(x, block.reciprocal, V::mul(x, block.reciprocal_rest));
}

template <typename V, EncodeMode kMode>
NIBBLE_VEC typename V::F quotient(typename V::F x, const BlockVectors<V>& block) {
  if constexpr (kMode.division == Division::kMultiply) {
    return V::mul(x, block.reciprocal);
  } else if constexpr (kMode.division == Division::kTwoParts) {
    return short_quotient<V>(x, block);
  } else if constexpr (kMode.division == Division::kCorrect) {
    return round_quotient<V, kMode.quotient>(corrected_quotient<V>(x, block.divisor, block.reciprocal));
  } else {
    return round_quotient<V, kMode.quotient>(V::div(x, block.divisor));
  }
}

// t rounded to a multiple of 2^(exponent(t) - kMantissaBits), the exponent at least that of `smallest`.
template <typename V, int kMantissaBits>
NIBBLE_VEC typename V::F round_to_mantissa(typename V::F t, float smallest) {
  const auto exponent = V::and_int(V::bits(t), V::set_int(0x7f800000));
  const auto binade = V::max_int(exponent, V::set_int(__builtin_bit_cast(int32_t, smallest)));
  const auto shifter = V::from_bits(V::add_int(binade, V::set_int(((23 - kMantissaBits) << 23) + 0x400000)));
  return V::sub(V::add(t, shifter), shifter);
}

// Doubled values in -12..12: what look_up_with_sign() takes. -13 stands for -0.
template <typename V, EncodeMode kMode>
NIBBLE_VEC Quantized<V> quantize_e2m1(typename V::F x, const BlockVectors<V>& block) {
  const auto t = quotient<V, kMode>(x, block);
  const auto limited = V::limit_magnitude(t, V::set(6.0f));
  const auto value = round_to_mantissa<V, 1>(limited, 1.0f);
  auto code = V::to_int(V::add(value, value));
  if constexpr (kMode.signed_zeros) {
    code = V::where_negative_and_zero(t, value, V::set_int(-13), code);
  }
  return {code, value};
}

// An E4M3 number divided by 256 is the float16 number of the same code, seven bits further up: both have their smallest
// normal number where the other has it then. The loops compute with quotients and values that are already so divided;
// division, which may meet scales near the ends of float32, does it last. The code is the value's pattern.
inline constexpr float kE4m3ToHalf = 0x1p-8f;

template <EncodeMode kMode>
inline constexpr float kE4m3Unit = kMode.division == Division::kDivide ? 1.0f : kE4m3ToHalf;

template <typename V, EncodeMode kMode>
NIBBLE_VEC Quantized<V> quantize_e4m3(const EncodeJob& job, typename V::F x, const BlockVectors<V>& block) {
  constexpr float kUnit = kE4m3Unit<kMode>;
  const auto t = quotient<V, kMode>(x, block);
  const auto limited = V::limit_magnitude(t, V::set(448.0f * kUnit));
  const auto value = round_to_mantissa<V, 3>(limited, 0x1p-6f * kUnit);
  auto code = V::bits(kMode.division == Division::kDivide ? V::mul(value, V::set(kE4m3ToHalf)) : value);
  if constexpr (kMode.signed_zeros) {
    const auto minus_zero = V::set_int(INT32_MIN);
    code = job.arithmetic.zero_sign == ZeroSign::kKeepSign ? V::where_signed_and_zero(t, value, minus_zero, code)
                                                           : V::where_negative_and_zero(t, value, minus_zero, code);
  }
  return {code, value};
}

// Signed integers; the value is q - zero.
template <typename V, EncodeMode kMode>
NIBBLE_VEC Quantized<V> quantize_integer(const EncodeJob& job, typename V::F x, const BlockVectors<V>& block) {
  auto t = quotient<V, kMode>(x, block);
  if constexpr (kMode.zero_points) t = round_quotient<V, kMode.quotient>(V::add(t, block.zero));
  const auto code = V::to_int(V::min(V::max(t, V::set(job.low)), V::set(job.high)));
  auto value = V::to_float(code);
  if constexpr (kMode.zero_points) value = V::sub(value, block.zero);
  return {code, value};
}

template <typename V, Element kElement, EncodeMode kMode>
NIBBLE_VEC Quantized<V> quantize(const EncodeJob& job, typename V::F x, const BlockVectors<V>& block) {
  if constexpr (kElement == Element::kE2M1) {
    return quantize_e2m1<V, kMode>(x, block);
  } else if constexpr (kElement == Element::kE4M3) {
    return quantize_e4m3<V, kMode>(job, x, block);
  } else {
    return quantize_integer<V, kMode>(job, x, block);
  }
}

template <typename V, Element kElement>
NIBBLE_VEC void store_codes(std::byte* out, const typename V::I* codes) {
  if constexpr (kElement == Element::kE4M3) return V::store_e4m3_of_halves(out, codes);
  const auto bytes = V::pack(codes);
  if constexpr (kElement == Element::kE2M1) V::store_nibbles(out, V::look_up_with_sign(bytes, kE2m1OfDoubled));
  if constexpr (kElement == Element::kInt4) V::store_nibbles(out, V::add_bytes(bytes, 8));
  if constexpr (kElement == Element::kInt8) V::store_bytes(out, bytes);
}

template <typename V, Element kElement, EncodeMode kMode>
NIBBLE_VEC BlockVectors<V> load_block(const EncodeJob& job, uint64_t b) {
  BlockVectors<V> block = {V::broadcast(job.divisor + b),
                           kMode.division == Division::kDivide ? V::set(0.0f) : V::broadcast(job.reciprocal + b),
                           kMode.division == Division::kTwoParts ? V::broadcast(job.reciprocal_rest + b) : V::set(0.0f),
                           V::broadcast(job.multiplier + b),
                           kMode.zero_points && job.zero != nullptr ? V::broadcast(job.zero + b) : V::set(0.0f)};
  if constexpr (kElement == Element::kE4M3 && kMode.division != Division::kDivide) {
    block.divisor = V::mul(block.divisor, V::set(1 / kE4m3ToHalf));
    block.reciprocal = V::mul(block.reciprocal, V::set(kE4m3ToHalf));
    block.reciprocal_rest = V::mul(block.reciprocal_rest, V::set(kE4m3ToHalf));
    block.multiplier = V::mul(block.multiplier, V::set(1 / kE4m3ToHalf));
  }
  return block;
}

template <typename V, EncodeMode kMode>
NIBBLE_VEC typename V::F load_columns(const EncodeJob& job, uint64_t k) {
  if constexpr (kMode.bf16) return V::load_bf16(job.bf16 + 2 * k);
  return V::load(job.x + k);
}

template <typename V>
struct SumVectors {
  typename V::Lanes signal, noise;
};

// 32 columns from column k on; columns of the second half belong to `second`.
template <typename V, Element kElement, EncodeMode kMode>
NIBBLE_VEC void encode_step(const EncodeJob& job, uint64_t k, const BlockVectors<V>& first,
                            const BlockVectors<V>& second, SumVectors<V>* sums) {
  constexpr uint64_t kVectors = kStep / V::kLanes;
  typename V::I codes[kVectors];
  typename V::F signal[kVectors], noise[kVectors];
  for (uint64_t v = 0; v < kVectors; ++v) {
    const BlockVectors<V>& block = v < kVectors / 2 ? first : second;
    const auto x = load_columns<V, kMode>(job, k + v * V::kLanes);
    const Quantized<V> q = quantize<V, kElement, kMode>(job, x, block);
    codes[v] = q.code;
    const auto error = V::sub(x, V::mul(q.value, block.multiplier));
    signal[v] = V::mul(x, x);
    noise[v] = V::mul(error, error);
  }
  V::add_step(signal, &sums->signal);
  V::add_step(noise, &sums->noise);
  constexpr uint64_t kBytes = kElement == Element::kE2M1 || kElement == Element::kInt4 ? kStep / 2 : kStep;
  store_codes<V, kElement>(job.codes + k / kStep * kBytes, codes);
}

// The columns from `start` on, which is a multiple of 32 and of the block.
static inline void encode_rest(const EncodeJob& job, uint64_t start, RowSums* sums) {
  if (start == job.cols) return;
  EncodeJob rest = job;
  const uint64_t b = start / job.block_cols;
  if (rest.x != nullptr) rest.x += start;
  if (rest.bf16 != nullptr) rest.bf16 += 2 * start;
  rest.cols -= start;
  rest.block_cols -= start % job.block_cols;
  rest.divisor += b;
  rest.multiplier += b;
  rest.reciprocal = rest.reciprocal_rest = nullptr;
  if (rest.zero != nullptr) rest.zero += b;
  const bool nibbles = job.element == Element::kE2M1 || job.element == Element::kInt4;
  rest.codes += nibbles ? start / 2 : start;
  scalar_kernels().encode(rest, sums);
}

template <typename V, Element kElement, EncodeMode kMode>
static void encode_loop(const EncodeJob& given, RowSums* sums) {
  const EncodeJob job = given;  // a copy that no store of codes can change
  SumVectors<V> lanes = {V::load_lanes(sums->signal), V::load_lanes(sums->noise)};
  uint64_t k = 0;
  if (job.block_cols == kStep / 2) {
    for (; k + kStep <= job.cols; k += kStep) {
      const uint64_t b = k / (kStep / 2);
      encode_step<V, kElement, kMode>(job, k, load_block<V, kElement, kMode>(job, b),
                                      load_block<V, kElement, kMode>(job, b + 1), &lanes);
    }
  } else {
    for (uint64_t b = 0, start = 0; start < job.cols; ++b, start += job.block_cols) {
      const uint64_t end = start + job.block_cols < job.cols ? start + job.block_cols : job.cols;
      const BlockVectors<V> block = load_block<V, kElement, kMode>(job, b);
      for (; k + kStep <= end; k += kStep) encode_step<V, kElement, kMode>(job, k, block, block, &lanes);
    }
  }
  V::store_lanes(sums->signal, lanes.signal);
  V::store_lanes(sums->noise, lanes.noise);
  encode_rest(given, k, sums);
}

// Noise of one block of 16 columns or a multiple of 32.
template <typename V, Element kElement, Division kDivision>
NIBBLE_VEC double noise_of_block(const EncodeJob& job, uint64_t b) {
  constexpr EncodeMode kWithZeros = {.zero_points = true, .division = kDivision};
  constexpr uint64_t kVectors = kStep / V::kLanes;
  const BlockVectors<V> block = load_block<V, kElement, kWithZeros>(job, b);
  typename V::Lanes sums = V::zero_lanes();
  const float* x = job.x + b * job.block_cols;
  for (uint64_t k = 0; k < job.block_cols; k += kStep) {
    typename V::F noise[kVectors];
    for (uint64_t v = 0; v < kVectors; ++v) {
      noise[v] = V::set(0.0f);
      if (k + v * V::kLanes >= job.block_cols) continue;
      const auto vector = V::load(x + k + v * V::kLanes);
      const Quantized<V> q = quantize<V, kElement, kWithZeros>(job, vector, block);
      const auto error = V::sub(vector, V::mul(q.value, block.multiplier));
      noise[v] = V::mul(error, error);
    }
    V::add_step(noise, &sums);
  }
  return V::total(sums);
}

template <typename V, Element kElement>
static void noise_loop(const EncodeJob& job, double* noise) {
  const uint64_t blocks = job.cols / job.block_cols;
  if (job.reciprocal_rest != nullptr && job.zero == nullptr) {
    for (uint64_t b = 0; b < blocks; ++b) noise[b] += noise_of_block<V, kElement, Division::kTwoParts>(job, b);
  } else if (job.reciprocal != nullptr) {
    for (uint64_t b = 0; b < blocks; ++b) noise[b] += noise_of_block<V, kElement, Division::kCorrect>(job, b);
  } else {
    for (uint64_t b = 0; b < blocks; ++b) noise[b] += noise_of_block<V, kElement, Division::kDivide>(job, b);
  }
}

// ---- which loop runs

static inline bool has_vector_blocks(const EncodeJob& job) {
  return job.block_cols == kStep / 2 || job.block_cols % kStep == 0 || job.block_cols >= job.cols;
}

template <typename V, Element kElement, Element kQuotient, Division kDivision>
static void encode_with_division(const EncodeJob& job, RowSums* sums) {
  if constexpr (kElement == Element::kInt4) {
    constexpr EncodeMode kZeros = {.quotient = kQuotient, .zero_points = true, .division = kDivision};
    if (job.zero != nullptr) return encode_loop<V, kElement, kZeros>(job, sums);
  }
  encode_loop<V, kElement, EncodeMode{.quotient = kQuotient, .division = kDivision}>(job, sums);
}

template <typename V, Element kElement>
static void encode_bf16(const EncodeJob& job, RowSums* sums) {
  constexpr EncodeMode kPowers = {.division = Division::kMultiply, .bf16 = true};
  constexpr EncodeMode kOthers = {.division = Division::kTwoParts, .bf16 = true};
  if (job.powers_of_two) return encode_loop<V, kElement, kPowers>(job, sums);
  encode_loop<V, kElement, kOthers>(job, sums);
}

template <typename V, Element kElement, Element kQuotient>
static void encode_with_quotient(const EncodeJob& job, RowSums* sums) {
  if constexpr (kElement != Element::kInt4 && kElement != Element::kInt8) {
    constexpr EncodeMode kSigned = {.quotient = kQuotient, .signed_zeros = true};
    if (job.arithmetic.zero_sign != ZeroSign::kCanonical) return encode_loop<V, kElement, kSigned>(job, sums);
    if constexpr (kQuotient == Element::kF32) {
      if (job.powers_of_two) return encode_with_division<V, kElement, kQuotient, Division::kMultiply>(job, sums);
    }
  }
  if (job.reciprocal != nullptr) return encode_with_division<V, kElement, kQuotient, Division::kCorrect>(job, sums);
  encode_with_division<V, kElement, kQuotient, Division::kDivide>(job, sums);
}

template <typename V, Element kElement>
static void encode_element_type(const EncodeJob& job, RowSums* sums) {
  if (job.bf16 != nullptr) return encode_bf16<V, kElement>(job, sums);
  if (job.arithmetic.quotient == Element::kBF16) {
    encode_with_quotient<V, kElement, Element::kBF16>(job, sums);
  } else {
    encode_with_quotient<V, kElement, Element::kF32>(job, sums);
  }
}

// What the loops leave to the scalar kernels.
static inline bool is_rare(const EncodeJob& job) {
  const ZeroSign zero_sign = job.arithmetic.zero_sign;
  return job.wide || job.arithmetic.ties != Ties::kEven || job.arithmetic.quotient == Element::kF16 ||
         zero_sign == ZeroSign::kZeroIsNegative ||
         (job.element == Element::kE2M1 && zero_sign == ZeroSign::kKeepSign) ||
         (job.element == Element::kInt8 && job.zero != nullptr) || !has_vector_blocks(job);
}

template <typename V>
static void encode(const EncodeJob& job, RowSums* sums) {
  if (is_rare(job)) return scalar_kernels().encode(job, sums);
  RowSums ignored = {};
  RowSums* into = sums != nullptr ? sums : &ignored;
  switch (job.element) {
    case Element::kE2M1: return encode_element_type<V, Element::kE2M1>(job, into);
    case Element::kE4M3: return encode_element_type<V, Element::kE4M3>(job, into);
    case Element::kInt4: return encode_element_type<V, Element::kInt4>(job, into);
    case Element::kInt8: return encode_element_type<V, Element::kInt8>(job, into);
    default: return scalar_kernels().encode(job, sums);
  }
}

template <typename V>
static void block_noise(const EncodeJob& job, double* noise) {
  const bool whole = job.block_cols == kStep / 2 || job.block_cols % kStep == 0;
  if (job.wide || !whole || !(job.arithmetic == Arithmetic{}) || job.cols % job.block_cols != 0) {
    return scalar_kernels().block_noise(job, noise);
  }
  switch (job.element) {
    case Element::kE2M1: return noise_loop<V, Element::kE2M1>(job, noise);
    case Element::kE4M3: return noise_loop<V, Element::kE4M3>(job, noise);
    case Element::kInt4: return noise_loop<V, Element::kInt4>(job, noise);
    case Element::kInt8: return noise_loop<V, Element::kInt8>(job, noise);
    default: return scalar_kernels().block_noise(job, noise);
  }
}

}  // namespace nibble::simd
