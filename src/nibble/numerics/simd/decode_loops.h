// Decoding loops over a vector type V (vec_avx2.h, vec_avx512.h). Included by *_avx2.cc and *_avx512.cc alone. A vector
// of columns lies in one block; other block sizes and the columns at the end go to the scalar kernels.
#pragma once

#include "nibble/numerics/simd/always_inline.h"
#include "nibble/numerics/simd/kernels.h"

namespace nibble::simd {

inline constexpr float kE2m1Values[8] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};

template <typename V>
struct DecodeVectors {
  typename V::F multiplier, zero, min;
};

template <typename V>
NIBBLE_VEC typename V::F decode_e2m1(const std::byte* codes) {
  const auto nibbles = V::load_nibbles(codes);
  const auto sign = V::and_int(V::template shift_left<28>(nibbles), V::set_int(static_cast<int32_t>(0x80000000u)));
  return V::from_bits(V::or_int(V::bits(V::look_up(kE2m1Values, nibbles)), sign));
}

template <typename V>
NIBBLE_VEC typename V::F decode_e4m3(const std::byte* codes) {
  const auto raw = V::load_unsigned_bytes(codes);
  const auto magnitude = V::and_int(raw, V::set_int(0x7f));
  const auto sign = V::template shift_left<24>(V::and_int(raw, V::set_int(0x80)));
  const auto normal = V::from_bits(V::add_int(V::template shift_left<20>(magnitude), V::set_int(120 << 23)));
  const auto subnormal = V::mul(V::to_float(magnitude), V::set(0x1p-9f));
  const auto finite = V::bits(V::where_less(magnitude, V::set_int(8), subnormal, normal));
  const auto value = V::where_equal(magnitude, V::set_int(0x7f), V::set_int(0x7fc00000), finite);
  return V::from_bits(V::or_int(value, sign));
}

template <typename V, Element kElement>
NIBBLE_VEC typename V::F decode_vector(const std::byte* codes, const DecodeVectors<V>& block) {
  if constexpr (kElement == Element::kE2M1) {
    return V::mul(decode_e2m1<V>(codes), block.multiplier);
  } else if constexpr (kElement == Element::kE4M3) {
    return V::mul(decode_e4m3<V>(codes), block.multiplier);
  } else if constexpr (kElement == Element::kInt4) {
    const auto q = V::sub_int(V::and_int(V::load_nibbles(codes), V::set_int(15)), V::set_int(8));
    return V::mul(V::sub(V::to_float(q), block.zero), block.multiplier);
  } else if constexpr (kElement == Element::kUint4) {
    const auto q = V::and_int(V::load_nibbles(codes), V::set_int(15));
    return V::add(V::mul(V::to_float(q), block.multiplier), block.min);
  } else {
    return V::mul(V::sub(V::to_float(V::load_signed_bytes(codes)), block.zero), block.multiplier);
  }
}

// The columns from `start` on, a multiple of 8: first the rest of its block, then the others.
static inline void decode_rest(const DecodeJob& job, uint64_t start, bool nibbles) {
  while (start < job.cols) {
    DecodeJob rest = job;
    const uint64_t b = start / job.block_cols, end = (b + 1) * job.block_cols;
    rest.codes += nibbles ? start / 2 : start;
    rest.out += start;
    rest.cols = (end < job.cols ? end : job.cols) - start;
    rest.multiplier += b;
    if (rest.zero != nullptr) rest.zero += b;
    if (rest.min != nullptr) rest.min += b;
    scalar_kernels().decode(rest);
    start += rest.cols;
  }
}

template <typename V, Element kElement>
static void decode_loop(const DecodeJob& job) {
  constexpr bool kNibbles = kElement != Element::kE4M3 && kElement != Element::kInt8;
  uint64_t k = 0;
  for (uint64_t b = 0, start = 0; start < job.cols; ++b, start += job.block_cols) {
    const uint64_t end = start + job.block_cols < job.cols ? start + job.block_cols : job.cols;
    const DecodeVectors<V> block = {V::broadcast(job.multiplier + b),
                                    job.zero != nullptr ? V::broadcast(job.zero + b) : V::set(0.0f),
                                    job.min != nullptr ? V::broadcast(job.min + b) : V::set(0.0f)};
    for (; k + V::kLanes <= end; k += V::kLanes) {
      V::store(job.out + k, decode_vector<V, kElement>(job.codes + (kNibbles ? k / 2 : k), block));
    }
  }
  decode_rest(job, k, kNibbles);
}

template <typename V>
static void decode(const DecodeJob& job) {
  if (job.block_cols % V::kLanes != 0 && job.block_cols < job.cols) return scalar_kernels().decode(job);
  switch (job.element) {
    case Element::kE2M1: return decode_loop<V, Element::kE2M1>(job);
    case Element::kE4M3: return decode_loop<V, Element::kE4M3>(job);
    case Element::kInt4: return decode_loop<V, Element::kInt4>(job);
    case Element::kUint4: return decode_loop<V, Element::kUint4>(job);
    case Element::kInt8: return decode_loop<V, Element::kInt8>(job);
    default: return scalar_kernels().decode(job);
  }
}

}  // namespace nibble::simd
