// Weights of any layout by float32 activations, 8 rows a vector: cpu/avx512/f32_panels_avx512.cc at half the width.
// Sixteen 4-bit values need two registers of eight, chosen between by the code's top bit: E2M1's is its sign, and INT4
// is converted rather than looked up.
#include <immintrin.h>

#include <algorithm>
#include <string>

#include "nibble/base/cpu_features.h"
#include "nibble/kernels/cpu/avx2/tile_scales_avx2.h"
#include "nibble/kernels/cpu/panel_table.h"
#include "nibble/kernels/kernel.h"

namespace nibble {
namespace {

constexpr uint64_t kPrefetchBytes = 3072;

// Code `column` of each lane of 8 four-bit codes. `zeros` is subtracted from integers.
template <CodeKind kCodes>
__m256 four_bit_value(__m256i codes, int column, __m256 zeros) {
  const __m256i code = _mm256_srli_epi32(codes, 4 * column);
  if constexpr (kCodes == CodeKind::kE2M1) {
    const __m256 magnitudes = _mm256_setr_ps(0, 0.5F, 1, 1.5F, 2, 3, 4, 6);
    const __m256i sign =
        _mm256_and_si256(_mm256_slli_epi32(code, 28), _mm256_set1_epi32(static_cast<int>(0x80000000U)));
    return _mm256_or_ps(_mm256_permutevar8x32_ps(magnitudes, code), _mm256_castsi256_ps(sign));
  } else {
    return _mm256_sub_ps(_mm256_cvtepi32_ps(_mm256_and_si256(code, _mm256_set1_epi32(15))), zeros);
  }
}

// Calls use(column of the run, weights) for `cols` columns of one half of the rows.
template <CodeKind kCodes, class Use>
void for_columns(const std::byte* codes, size_t half, uint64_t cols, __m256 zeros, const Use& use) {
  const auto chunk = [&](uint64_t index) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes + index * 64 + half * 32));
  };
  if constexpr (kCodes == CodeKind::kE2M1 || kCodes == CodeKind::kInt4) {
    for (uint64_t c = 0; c < cols; c += 8) {
      const __m256i words = chunk(c / 8);
      for (int i = 0; i < 8; ++i) use(c + static_cast<uint64_t>(i), four_bit_value<kCodes>(words, i, zeros));
    }
  } else if constexpr (kCodes == CodeKind::kInt8) {
    for (uint64_t c = 0; c < cols; c += 4) {
      const __m256i words = chunk(c / 4);
      for (int i = 0; i < 4; ++i) {
        const __m256i value = _mm256_srai_epi32(_mm256_slli_epi32(words, 24 - 8 * i), 24);
        use(c + static_cast<uint64_t>(i), _mm256_cvtepi32_ps(value));
      }
    }
  } else if constexpr (kCodes == CodeKind::kBF16) {
    for (uint64_t c = 0; c < cols; c += 2) {
      const __m256i words = chunk(c / 2);
      use(c, _mm256_castsi256_ps(_mm256_slli_epi32(words, 16)));
      use(c + 1, _mm256_castsi256_ps(_mm256_and_si256(words, _mm256_set1_epi32(static_cast<int>(0xffff0000U)))));
    }
  } else if constexpr (kCodes == CodeKind::kE4M3) {
    const __m128i mask = _mm_set1_epi16(static_cast<short>(0xbf80));
    const __m256 up = _mm256_set1_ps(256);  // as binary16 the same bits are 2^-8 of the value
    for (uint64_t c = 0; c < cols; c += 2) {
      const auto* at = reinterpret_cast<const __m128i*>(codes + c * kRowGroup + half * 16);
      const __m128i pairs = _mm_loadu_si128(at);
      // The sign to bit 15, the magnitude behind one zero bit: what the arithmetic shift copies is masked away.
      const __m128i even = _mm_and_si128(_mm_srai_epi16(_mm_slli_epi16(pairs, 8), 1), mask);
      const __m128i odd = _mm_and_si128(_mm_srai_epi16(pairs, 1), mask);
      use(c, _mm256_mul_ps(_mm256_cvtph_ps(even), up));
      use(c + 1, _mm256_mul_ps(_mm256_cvtph_ps(odd), up));
    }
  } else {
    for (uint64_t c = 0; c < cols; ++c) use(c, _mm256_castsi256_ps(chunk(c)));
  }
}

// The scales of half a tile's rows: in front of its codes, apart, or 1.
template <ScaleType kScale>
__m256 half_scales(const ResidentMatrix& matrix, const std::byte* tile, uint64_t group, uint64_t index, size_t half) {
  const WeightLayout& layout = matrix.layout;
  if constexpr (kScale != ScaleType::kNone) return load_half_scales<kScale>(tile, half, matrix.multiplier);
  if (layout.apart_cols == 0) return _mm256_set1_ps(1);
  const float* apart = matrix.apart(group) + index * layout.tile_cols / layout.apart_cols * layout.apart_lanes;
  return layout.apart_lanes == 1 ? _mm256_set1_ps(*apart) : _mm256_loadu_ps(apart + 8 * half);
}

// Some tokens by one row group.
template <CodeKind kCodes, ScaleType kScale, ZeroPoint kZero, size_t kTokens>
class Block {
 public:
  Block(const PanelTask& task, uint64_t group, uint64_t first)
      : task_(task),
        layout_(task.weights->layout),
        tile_bytes_(layout_.tile_bytes()),
        code_bytes_(layout_.code_bytes()),
        group_(group),
        first_(first) {
    for (size_t t = 0; t < kTokens; ++t) {
      const uint64_t row = task.row_of(first + t);
      x_[t] = task.f32.row(row);
      x_sums_[t] = kZero == ZeroPoint::kMin ? task.f32.run_sums + row * task.f32.runs : nullptr;
    }
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
    const std::byte* zero_codes = tile + tile_scale_bytes<kScale>();
    const std::byte* codes = zero_codes + tile_zero_bytes<kZero>();
    const __m256 scale = half_scales<kScale>(*task_.weights, tile, group_, index, half);
    __m256 zeros = _mm256_set1_ps(kZero == ZeroPoint::kNone ? 8.0F : 0.0F);
    __m256 mins = _mm256_setzero_ps();
    if constexpr (kZero == ZeroPoint::kMin) {
      mins = _mm256_loadu_ps(reinterpret_cast<const float*>(zero_codes) + 8 * half);
    }
    if constexpr (kZero == ZeroPoint::kCode) {
      const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(zero_codes + 8 * half));
      zeros = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
    }
    const uint64_t run = layout_.run_cols(), runs = layout_.tile_cols / run, run_bytes = code_bytes_ / runs;
    for (uint64_t r = 0; r < runs; ++r) {
      const uint64_t column = index * layout_.tile_cols + r * run;
      __m256 sums[2][kTokens];
      for (auto& parity : sums) std::fill_n(parity, kTokens, _mm256_setzero_ps());
      for_columns<kCodes>(codes + r * run_bytes, half, run, zeros, [&](uint64_t c, __m256 weights) {
        for (size_t t = 0; t < kTokens; ++t) {
          sums[c % 2][t] = _mm256_fmadd_ps(weights, _mm256_set1_ps(x_[t][column + c]), sums[c % 2][t]);
        }
      });
      for (size_t t = 0; t < kTokens; ++t) {
        acc_[half][t] = _mm256_fmadd_ps(_mm256_add_ps(sums[0][t], sums[1][t]), scale, acc_[half][t]);
        if constexpr (kZero == ZeroPoint::kMin) {
          acc_[half][t] = _mm256_fmadd_ps(mins, _mm256_set1_ps(x_sums_[t][index * runs + r]), acc_[half][t]);
        }
      }
    }
  }

  const PanelTask& task_;
  // Asked for once: calls inside the loops would cost the sums their registers.
  const WeightLayout layout_;
  const uint64_t tile_bytes_, code_bytes_;
  uint64_t group_, first_;
  const float* x_[kTokens];
  const float* x_sums_[kTokens];
  __m256 acc_[2][kTokens];
};

template <CodeKind kCodes, ScaleType kScale, ZeroPoint kZero, size_t kTokens>
void block(const PanelTask& task, uint64_t group, uint64_t first) {
  Block<kCodes, kScale, kZero, kTokens>(task, group, first).run();
}

struct Panels {
  static constexpr bool kFloats = true;
  template <CodeKind kCodes, ScaleType kScale, ZeroPoint kZero, size_t /*kRun*/>
  static void panel(const PanelTask& task) {
    for (uint64_t group = task.group_begin; group < task.group_end; ++group) {
      uint64_t first = 0;
      for (; first + 4 <= task.tokens; first += 4) block<kCodes, kScale, kZero, 4>(task, group, first);
      for (; first < task.tokens; ++first) block<kCodes, kScale, kZero, 1>(task, group, first);
    }
  }
};

std::string processor_lacks() { return best_isa() >= Isa::kAvx2 ? "" : "AVX2, FMA or F16C"; }

}  // namespace

extern const Kernel kAvx2F32;
const Kernel kAvx2F32 = {"avx2",          ActivationKind::kF32,     8,
                         processor_lacks, panel_from_table<Panels>, obstacle_from_table<Panels>};

}  // namespace nibble
