// Loops over dense elements and over blocks of float32, for a vector type V (vec_avx2.h, vec_avx512.h). Included by
// *_avx2.cc and *_avx512.cc alone.
#pragma once

#include "nibble/numerics/simd/always_inline.h"
#include "nibble/numerics/simd/kernels.h"

namespace nibble::simd {

template <typename V>
static void load(Element element, const std::byte* in, uint64_t count, float* out) {
  uint64_t done = 0, size = 1;
  switch (element) {
    case Element::kBF16:
      size = 2;
      for (; done + V::kLanes <= count; done += V::kLanes) V::store(out + done, V::load_bf16(in + 2 * done));
      break;
    case Element::kF16:
      size = 2;
      for (; done + V::kLanes <= count; done += V::kLanes) V::store(out + done, V::load_f16(in + 2 * done));
      break;
    case Element::kF32: __builtin_memcpy(out, in, 4 * count); return;
    case Element::kF64:
      size = 8;
      for (; done + V::kLanes <= count; done += V::kLanes) V::store(out + done, V::load_f64(in + 8 * done));
      break;
    default: break;
  }
  scalar_kernels().load(element, in + done * size, count - done, out + done);
}

// Round to nearest even; NaNs become quiet and keep their sign and upper payload.
template <typename V>
NIBBLE_VEC typename V::I bf16_of(typename V::F x) {
  const auto bits = V::bits(x);
  const auto high = V::template shift_right<16>(bits);
  const auto rounded =
      V::template shift_right<16>(V::add_int(V::add_int(bits, V::set_int(0x7fff)), V::and_int(high, V::set_int(1))));
  const auto magnitude = V::and_int(bits, V::set_int(0x7fffffff));
  const auto nan = V::or_int(high, V::set_int(0x40));
  return V::bits(V::where_less(V::set_int(0x7f800000), magnitude, V::from_bits(nan), V::from_bits(rounded)));
}

template <typename V>
static void store(Element element, const float* in, uint64_t count, std::byte* out) {
  uint64_t done = 0;
  switch (element) {
    case Element::kBF16:
      for (; done + V::kLanes <= count; done += V::kLanes) {
        V::store_low_halves(out + 2 * done, bf16_of<V>(V::load(in + done)));
      }
      return scalar_kernels().store(element, in + done, count - done, out + 2 * done);
    case Element::kF16:
      for (; done + V::kLanes <= count; done += V::kLanes) V::store_f16(out + 2 * done, V::load(in + done));
      return scalar_kernels().store(element, in + done, count - done, out + 2 * done);
    case Element::kF32: __builtin_memcpy(out, in, 4 * count); return;
    default: return scalar_kernels().store(element, in, count, out);
  }
}

// Largest magnitude pattern of whole vectors of 16-bit elements.
template <typename V>
NIBBLE_VEC uint16_t abs_max_16(const std::byte* in, uint64_t count) {
  auto most = V::set_int(0);
  for (uint64_t i = 0; i < count; i += 2 * V::kLanes) {
    most = V::max_u16(most, V::and_int(V::load_raw(in + 2 * i), V::set_int(0x7fff7fff)));
  }
  const auto halves = V::max_int(V::and_int(most, V::set_int(0xffff)), V::template shift_right<16>(most));
  return static_cast<uint16_t>(V::largest(halves));
}

NIBBLE_VEC uint32_t float_pattern(Element element, uint16_t pattern) {
  return float_bits(element == Element::kBF16 ? bf16_decode(pattern) : f16_decode(pattern));
}

template <typename V>
static uint32_t abs_max(Element element, const std::byte* in, uint64_t count) {
  uint64_t done = 0, size = 1;
  uint32_t most = 0;
  if (element == Element::kBF16 || element == Element::kF16) {
    size = 2;
    done = count - count % (2 * V::kLanes);
    most = float_pattern(element, abs_max_16<V>(in, done));
  } else if (element == Element::kF32) {
    size = 4;
    auto largest = V::set_int(0);
    for (; done + V::kLanes <= count; done += V::kLanes) {
      largest = V::max_int(largest, V::and_int(V::load_raw(in + 4 * done), V::set_int(0x7fffffff)));
    }
    most = V::largest(largest);
  }
  const uint32_t rest = scalar_kernels().abs_max(element, in + done * size, count - done);
  return rest > most ? rest : most;
}

template <typename V>
NIBBLE_VEC typename V::I magnitude_at(const float* x) {
  return V::and_int(V::bits(V::load(x)), V::set_int(0x7fffffff));
}

template <typename V>
NIBBLE_VEC typename V::I abs_max_of_block(const float* x, uint64_t cols) {
  auto most = magnitude_at<V>(x);
  for (uint64_t k = V::kLanes; k < cols; k += V::kLanes) most = V::max_int(most, magnitude_at<V>(x + k));
  return most;
}

// Eight blocks at a time, so that their maxima leave the vectors together.
template <typename V, uint64_t kBlockCols>
NIBBLE_VEC uint64_t abs_max_of_8_blocks(const float* x, uint64_t cols, uint64_t block_cols, float* amax) {
  const uint64_t width = kBlockCols == 0 ? block_cols : kBlockCols;
  uint64_t b = 0;
  for (; (b + 8) * width <= cols; b += 8) {
    typename V::I most[8];
    for (uint64_t i = 0; i < 8; ++i) most[i] = abs_max_of_block<V>(x + (b + i) * width, width);
    V::largest_of_8(most, amax + b);
  }
  return b;
}

template <typename V>
static void block_abs_max(const float* x, uint64_t cols, uint64_t block_cols, float* amax) {
  if (block_cols % V::kLanes != 0 && block_cols < cols) {
    return scalar_kernels().block_abs_max(x, cols, block_cols, amax);
  }
  uint64_t b = block_cols == 16   ? abs_max_of_8_blocks<V, 16>(x, cols, block_cols, amax)
               : block_cols == 32 ? abs_max_of_8_blocks<V, 32>(x, cols, block_cols, amax)
                                  : abs_max_of_8_blocks<V, 0>(x, cols, block_cols, amax);
  for (uint64_t start = b * block_cols; start < cols; start += block_cols, ++b) {
    const uint64_t count = start + block_cols < cols ? block_cols : cols - start;
    const uint64_t whole = count - count % V::kLanes;
    if (whole > 0) {
      const uint32_t most = V::largest(abs_max_of_block<V>(x + start, whole));
      if (most > float_bits(amax[b])) amax[b] = bits_float(most);
    }
    scalar_kernels().block_abs_max(x + start + whole, count - whole, block_cols, amax + b);
  }
}

// 16-bit elements without the detour over float32.
template <typename V>
static void dense_block_abs_max(Element element, const std::byte* in, uint64_t cols, uint64_t block_cols, float* amax) {
  const bool short_elements = element == Element::kBF16 || element == Element::kF16;
  uint64_t b = 0;
  if (element == Element::kBF16 && block_cols == 16) b = V::template largest_of_bf16_blocks<16>(in, cols, amax);
  if (element == Element::kBF16 && block_cols == 32) b = V::template largest_of_bf16_blocks<32>(in, cols, amax);
  for (; short_elements && block_cols % (2 * V::kLanes) == 0 && (b + 1) * block_cols <= cols; ++b) {
    const uint32_t most = float_pattern(element, abs_max_16<V>(in + 2 * b * block_cols, block_cols));
    if (most > float_bits(amax[b])) amax[b] = bits_float(most);
  }
  const uint64_t done = b * block_cols;
  scalar_kernels().dense_block_abs_max(element, in + element_bits(element) / 8 * done, cols - done, block_cols,
                                       amax + b);
}

// Eight blocks at a time, as above: minima first, then maxima, since sixteen vectors at once do not fit the registers.
// Lanes start from zeros, which minimum and maximum include anyway.
template <typename V>
NIBBLE_VEC uint64_t min_max_of_8_blocks(const float* x, uint64_t cols, uint64_t block_cols, float* min, float* max) {
  uint64_t b = 0;
  for (; (b + 8) * block_cols <= cols; b += 8) {
    typename V::F most[8];
    for (uint64_t i = 0; i < 8; ++i) {
      const float* block = x + (b + i) * block_cols;
      most[i] = V::min(V::load(block), V::set(0.0f));
      for (uint64_t k = V::kLanes; k < block_cols; k += V::kLanes) most[i] = V::min(V::load(block + k), most[i]);
    }
    V::smallest_of_8(most, min + b);
    for (uint64_t i = 0; i < 8; ++i) {
      const float* block = x + (b + i) * block_cols;
      most[i] = V::max(V::load(block), V::set(0.0f));
      for (uint64_t k = V::kLanes; k < block_cols; k += V::kLanes) most[i] = V::max(V::load(block + k), most[i]);
    }
    V::largest_floats_of_8(most, max + b);
  }
  return b;
}

template <typename V>
static void block_min_max(const float* x, uint64_t cols, uint64_t block_cols, float* min, float* max) {
  if (block_cols % V::kLanes != 0 && block_cols < cols) {
    return scalar_kernels().block_min_max(x, cols, block_cols, min, max);
  }
  uint64_t b = min_max_of_8_blocks<V>(x, cols, block_cols, min, max);
  for (uint64_t start = b * block_cols; start < cols; start += block_cols, ++b) {
    const uint64_t count = start + block_cols < cols ? block_cols : cols - start;
    auto low = V::broadcast(min + b), high = V::broadcast(max + b);
    uint64_t k = 0;
    for (; k + V::kLanes <= count; k += V::kLanes) {
      const auto vector = V::load(x + start + k);
      low = V::min(vector, low);
      high = V::max(vector, high);
    }
    min[b] = V::smallest_float(low);
    max[b] = V::largest_float(high);
    scalar_kernels().block_min_max(x + start + k, count - k, block_cols, min + b, max + b);
  }
}

}  // namespace nibble::simd
