// A warp's product of one tile of weights (fragment_layout.h) with the activations of up to 8 tokens, or 16.
//
// The tile's 16 rows are the MMA's M, tokens its N, so a token costs the same as eight, and decoding is the work: nine
// integer operations for eight E2M1 codes, seven and four subtractions for INT4 ones, against one MMA for eight weights
// of a lane. Scales:
//
//   E8M0 of 32, BF16 of 32 to 128   the group's sum is formed apart and added with its scale in float32: exact weights
//   E4M3 of 16                      multiplied onto the lane's weights, whose columns are of one group: exact in BF16
//
// E2M1 pairs carry 2^-126. Activations come multiplied by 2^63, so sums of a group carry 2^-63: as far from underflow
// as from overflow. E4M3 scales are taken times 2^63, E8M0 exponents 240 - 127 below the largest; kSumFactor undoes the
// rest.
#pragma once

#include "nibble/kernels/cuda/fragment_layout.h"
#include "nibble/kernels/cuda/fragment_words.h"
#include "nibble/kernels/cuda/ptx.cuh"

namespace nibble {

// What of a format the kernels know when they are compiled.
template <CodeKind kCodesOf, ScaleType kScaleOf, int kGroupOf>
struct FragmentFormat {
  static constexpr CodeKind kCodes = kCodesOf;
  static constexpr ScaleType kScale = kScaleOf;
  static constexpr int kGroup = kGroupOf;
  static constexpr int kTileCols = kGroup > 64 ? kGroup : 64;
  static constexpr int kScaleSize = kScale == ScaleType::kBF16 ? 2 : 1;
  static constexpr int kTileBytes = kTileCols * 8 + kTileCols / kGroup * 16 * kScaleSize;
  // A narrow tile, of 32 columns, at the end of a row tile.
  static constexpr int kNarrowBytes = 32 * 8 + 32 / (kGroup < 32 ? kGroup : 32) * 16 * kScaleSize;
  static constexpr bool kCanBeNarrow = kGroup <= 32;
  static constexpr bool kScalesActivations = kCodes == CodeKind::kE2M1;
  static constexpr float kSumFactor = kScale == ScaleType::kE8M0 ? 0x1p-50f : 1.0f;
};

inline constexpr uint32_t kPairOf2To63 = 0x5F005F00u, kPairOf2To120 = 0x7B807B80u, kPairOfMinus136 = 0xC308C308u;

// Eight codes as four BF16 pairs. Shifts right as products with powers of two, on the multipliers that idle beside the
// integer units, were tried: 7 % slower, since such a product takes two dispatches.
template <class Format>
__device__ __forceinline__ void decode_word(uint32_t word, uint32_t pairs[4]) {
  if constexpr (Format::kCodes == CodeKind::kE2M1) {
    e2m1_word_to_pairs(word, pairs);
  } else {
    int4_word_to_pairs(word, pairs);
#pragma unroll
    for (int i = 0; i < 4; ++i) pairs[i] = ptx::add_pair(pairs[i], kPairOfMinus136);
  }
}

__device__ __forceinline__ float low_bf16(uint32_t pair) { return __uint_as_float(pair << 16); }
__device__ __forceinline__ float high_bf16(uint32_t pair) { return __uint_as_float(pair & 0xFFFF0000u); }

template <int kBlocks>
struct Sums {
  float of[kBlocks][4] = {};
  __device__ __forceinline__ void add_scaled(const Sums& group, float lower, float upper) {
#pragma unroll
    for (int b = 0; b < kBlocks; ++b) {
      of[b][0] = fmaf(group.of[b][0], lower, of[b][0]);
      of[b][1] = fmaf(group.of[b][1], lower, of[b][1]);
      of[b][2] = fmaf(group.of[b][2], upper, of[b][2]);
      of[b][3] = fmaf(group.of[b][3], upper, of[b][3]);
    }
  }
};

// Adds the products of 32 columns: `lower` and `upper` are the words of rows g and g + 8, `x` the activations.
template <int kBlocks>
__device__ __forceinline__ void multiply_32(const uint32_t lower[4], const uint32_t upper[4], const uint4 (&x)[kBlocks],
                                            Sums<kBlocks>* sums) {
#pragma unroll
  for (int b = 0; b < kBlocks; ++b) {
    ptx::mma_16x8x16(sums->of[b], lower[0], upper[0], lower[1], upper[1], x[b].x, x[b].y);
    ptx::mma_16x8x16(sums->of[b], lower[2], upper[2], lower[3], upper[3], x[b].z, x[b].w);
  }
}

// E4M3 scales of rows g (low) and g + 8 (high) for the lane's columns, times 2^63.
__device__ __forceinline__ uint32_t e4m3_scales(uint32_t of_lower, uint32_t of_upper, uint32_t index) {
  const uint32_t bytes = __byte_perm(of_lower, of_upper, index | (index + 4) << 8);
  return ptx::multiply_pair(ptx::multiply_pair((bytes & 0x00FF00FFu) << 4, kPairOf2To120), kPairOf2To63);
}

// kCols columns of the tile at `tile` in shared memory. `activations(b, half)` gives the lane's 8 activations of block
// b of tokens in columns 32 half .. of this tile.
template <class Format, int kBlocks, int kCols, class Activations>
__device__ __forceinline__ void multiply_tile(const uint8_t* tile, const Activations& activations,
                                              Sums<kBlocks>* sums) {
  const uint32_t lane = threadIdx.x % 32, g = lane / 4;
  constexpr int kHalves = kCols / 32, kGroups = kCols / Format::kGroup;
  constexpr uint32_t kScaleBytesOfRow = kGroups * Format::kScaleSize;
  const uint8_t* scales = tile + kCols * 8 + g * 2 * kScaleBytesOfRow;
  uint32_t scale[2] = {};  // rows g and g + 8, or both in the first
  if constexpr (2 * kScaleBytesOfRow == 8) {
    const uint2 both = *reinterpret_cast<const uint2*>(scales);
    scale[0] = both.x;
    scale[1] = both.y;
  } else if constexpr (2 * kScaleBytesOfRow == 4) {
    scale[0] = *reinterpret_cast<const uint32_t*>(scales);
  } else {
    scale[0] = *reinterpret_cast<const uint16_t*>(scales);
  }
  Sums<kBlocks> group;
  uint2 words[2];  // of the two halves of a block
#pragma unroll
  for (int half = 0; half < kHalves; ++half) {
    if constexpr (kHalves == 1) {
      words[0] = *reinterpret_cast<const uint2*>(tile + lane * 8);
    } else if (half % 2 == 0) {
      const uint4 block = *reinterpret_cast<const uint4*>(tile + half / 2 * 512 + lane * 16);
      words[0] = make_uint2(block.x, block.y);
      words[1] = make_uint2(block.z, block.w);
    }
    uint4 x[kBlocks];
#pragma unroll
    for (int b = 0; b < kBlocks; ++b) x[b] = activations(b, half);
    uint32_t lower[4], upper[4];
    decode_word<Format>(words[half % 2].x, lower);
    decode_word<Format>(words[half % 2].y, upper);
    if constexpr (Format::kScale == ScaleType::kE4M3) {
      uint32_t of_lower = scale[0], of_upper = scale[1];
      if constexpr (kHalves == 1) of_upper = scale[0] >> 16;
      const uint32_t both = e4m3_scales(of_lower, of_upper, half * 2 + lane % 4 / 2);
      const uint32_t low = __byte_perm(both, 0, 0x1010), high = __byte_perm(both, 0, 0x3232);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        lower[i] = ptx::multiply_pair(lower[i], low);
        upper[i] = ptx::multiply_pair(upper[i], high);
      }
      multiply_32<kBlocks>(lower, upper, x, sums);
    } else {
      multiply_32<kBlocks>(lower, upper, x, &group);
      if ((half + 1) * 32 % Format::kGroup != 0) continue;
      const int index = (half + 1) * 32 / Format::kGroup - 1;  // of the group in the tile
      float low, high;
      if constexpr (Format::kScale == ScaleType::kE8M0) {
        low = __uint_as_float((scale[0] << (23 - 8 * index)) & 0x7F800000u);
        const int place = kGroups + index;  // of row g + 8
        high = __uint_as_float((place == 3 ? scale[0] >> 1 : scale[0] << (23 - 8 * place)) & 0x7F800000u);
      } else if constexpr (kGroups == 2) {
        low = index == 0 ? low_bf16(scale[0]) : high_bf16(scale[0]);
        high = index == 0 ? low_bf16(scale[1]) : high_bf16(scale[1]);
      } else {
        low = low_bf16(scale[0]);
        high = high_bf16(scale[0]);
      }
      sums->add_scaled(group, low, high);
      group = Sums<kBlocks>{};
    }
  }
}

}  // namespace nibble
