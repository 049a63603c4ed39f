// Integer weights by INT8 activations, 8 rows a vector: the loops of AVX2 with and without VNNI, which differ in one
// operation. `Dot::add(sum, unsigned, signed)` adds to each 32-bit lane the four products of its bytes.
//
// A tile's 16 rows are two halves. What differs from cpu/avx512/int8_panels_avx512vnni.cc is the width alone.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "nibble/kernels/cpu/avx2/tile_scales_avx2.h"
#include "nibble/kernels/cpu/panel_table.h"
#include "nibble/kernels/panel.h"

namespace nibble::avx2 {

inline constexpr uint64_t kPrefetchBytes = 3072;

inline __m256i broadcast4(const int8_t* at) {
  int32_t word = 0;
  std::memcpy(&word, at, sizeof(word));
  return _mm256_set1_epi32(word);
}

// Half a chunk of 4-bit codes, 4 columns of the low nibbles and 4 of the high ones.
template <CodeKind kCodes>
void unpack(const std::byte* at, __m256i* low, __m256i* high) {
  const __m256i mask = _mm256_set1_epi8(0x0f);
  const __m256i codes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
  *low = _mm256_and_si256(codes, mask);
  *high = _mm256_and_si256(_mm256_srli_epi16(codes, 4), mask);
  if constexpr (kCodes == CodeKind::kE2M1) {
    // 2 q + 12 of the codes 0 to 15.
    const __m256i values =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0));
    *low = _mm256_shuffle_epi8(values, *low);
    *high = _mm256_shuffle_epi8(values, *high);
  }
}

// The integer sum of one run of half a row group for one token.
template <class Dot, CodeKind kCodes, size_t kRun>
__m256i add_run(const std::byte* codes, size_t half, const int8_t* x, __m256i sum) {
  if constexpr (kCodes == CodeKind::kInt8) {
    for (size_t c = 0; c < kRun; c += 4) {
      const auto* at = reinterpret_cast<const __m256i*>(codes + c * kRowGroup + half * 32);
      sum = Dot::add_signed(sum, _mm256_loadu_si256(at), broadcast4(x + c));
    }
  } else {
    for (size_t c = 0; c < kRun; c += 8) {
      __m256i low, high;
      unpack<kCodes>(codes + c * kRowGroup / 2 + half * 32, &low, &high);
      sum = Dot::add(sum, low, broadcast4(x + c));
      sum = Dot::add(sum, high, broadcast4(x + c + 4));
    }
  }
  return sum;
}

// Some tokens by one row group.
template <class Dot, CodeKind kCodes, ScaleType kScale, ZeroPoint kZero, size_t kRun, size_t kTokens>
class Block {
 public:
  Block(const PanelTask& task, uint64_t group, uint64_t first)
      : task_(task),
        layout_(task.weights->layout),
        tile_bytes_(layout_.tile_bytes()),
        code_bytes_(layout_.code_bytes()),
        group_(group),
        first_(first) {
    for (size_t t = 0; t < kTokens; ++t) rows_[t] = task.row_of(first + t);
    for (auto& half : acc_) std::fill_n(half, kTokens, _mm256_setzero_ps());
  }

  void run() {
    const std::byte* tile = task_.weights->row_group(group_);
    for (uint64_t i = 0; i < layout_.tiles(); ++i, tile += tile_bytes_) {
      for (uint64_t line = 0; line < tile_bytes_; line += 64) {
        _mm_prefetch(reinterpret_cast<const char*>(tile + kPrefetchBytes + line), _MM_HINT_T0);
      }
      for (size_t half = 0; half < 2; ++half) add_half(tile, i, half);
    }
    const uint64_t present = std::min(kRowGroup, layout_.n - group_ * kRowGroup);
    for (size_t t = 0; t < kTokens; ++t) {
      float* out = task_.out + (first_ + t) * task_.out_stride + group_ * kRowGroup;
      for (size_t half = 0; half < 2; ++half) store_half(out, present, half, acc_[half][t]);
    }
  }

 private:
  void add_half(const std::byte* tile, uint64_t index, size_t half) {
    const uint64_t runs = layout_.tile_cols / kRun, run_bytes = code_bytes_ / runs;
    const std::byte* zero_codes = tile + tile_scale_bytes<kScale>();
    const std::byte* codes = zero_codes + tile_zero_bytes<kZero>();
    const __m256 scale = load_half_scales<kScale>(tile, half, task_.weights->multiplier);
    __m256i zeros = _mm256_setzero_si256();
    __m256 mins = _mm256_setzero_ps();
    if constexpr (kZero == ZeroPoint::kMin) {
      mins = _mm256_loadu_ps(reinterpret_cast<const float*>(zero_codes) + 8 * half);
    }
    if constexpr (kZero == ZeroPoint::kCode) {
      zeros = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(zero_codes + 8 * half)));
    }
    for (uint64_t r = 0; r < runs; ++r) {
      for (size_t t = 0; t < kTokens; ++t) {
        const uint64_t run = rows_[t] * task_.int8.groups + index * runs + r;
        const int8_t* x = task_.int8.codes + rows_[t] * task_.int8.padded_k + (index * runs + r) * kRun;
        __m256i sum = _mm256_setzero_si256();
        if constexpr (kZero == ZeroPoint::kCode) {
          sum = _mm256_sub_epi32(sum, _mm256_mullo_epi32(zeros, _mm256_set1_epi32(task_.int8.sums[run])));
        } else if constexpr (kCodes != CodeKind::kInt8) {
          sum = _mm256_set1_epi32(task_.int8.corrections[run]);
        }
        sum = add_run<Dot, kCodes, kRun>(codes + r * run_bytes, half, x, sum);
        const __m256 factor = _mm256_mul_ps(scale, _mm256_set1_ps(task_.int8.scales[run]));
        acc_[half][t] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum), factor, acc_[half][t]);
        if constexpr (kZero == ZeroPoint::kMin) {
          const float a = task_.int8.scales[run] * static_cast<float>(task_.int8.sums[run]);
          acc_[half][t] = _mm256_fmadd_ps(mins, _mm256_set1_ps(a), acc_[half][t]);
        }
      }
    }
  }

  const PanelTask& task_;
  // Asked for once: calls inside the loops would cost the sums their registers.
  const WeightLayout layout_;
  const uint64_t tile_bytes_, code_bytes_;
  uint64_t group_, first_;
  uint64_t rows_[kTokens];
  __m256 acc_[2][kTokens];
};

template <class Dot, CodeKind kCodes, ScaleType kScale, ZeroPoint kZero, size_t kRun, size_t kTokens>
void block(const PanelTask& task, uint64_t group, uint64_t first) {
  Block<Dot, kCodes, kScale, kZero, kRun, kTokens>(task, group, first).run();
}

template <class Dot>
struct Panels {
  static constexpr bool kFloats = false;
  template <CodeKind kCodes, ScaleType kScale, ZeroPoint kZero, size_t kRun>
  static void panel(const PanelTask& task) {
    for (uint64_t group = task.group_begin; group < task.group_end; ++group) {
      uint64_t first = 0;
      for (; first + 4 <= task.tokens; first += 4) block<Dot, kCodes, kScale, kZero, kRun, 4>(task, group, first);
      for (; first < task.tokens; ++first) block<Dot, kCodes, kScale, kZero, kRun, 1>(task, group, first);
    }
  }
};

}  // namespace nibble::avx2
