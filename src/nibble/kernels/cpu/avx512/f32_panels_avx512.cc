// Weights of any layout by float32 activations, 16 rows a vector.
//
// A lane is a row. Four-bit codes are looked up in a register of 16 values, whose index needs no mask: a shift brings
// code i of each lane to the low four bits, so a column of 16 weights is a shift, a permutation and one FMA a token
// with a broadcast activation. Even and odd columns of a run are two chains (panel.h), two row groups side by side make
// four.
#include <immintrin.h>

#include <algorithm>
#include <string>

#include "nibble/base/cpu_features.h"
#include "nibble/kernels/cpu/avx512/tile_scales_avx512.h"
#include "nibble/kernels/kernel.h"

namespace nibble {
namespace {

constexpr uint64_t kPrefetchBytes = 3072;

// Each kind of code: columns come two at a time, the even one first.
struct FourBits {
  static constexpr uint64_t kColumns = 8;  // of a chunk
  __m512 values, zeros;
  template <ZeroPoint kZero>
  __m512 value(__m512i codes, size_t column) const {
    const __m512 q = _mm512_permutexvar_ps(_mm512_srli_epi32(codes, static_cast<unsigned>(4 * column)), values);
    return kZero == ZeroPoint::kCode ? _mm512_sub_ps(q, zeros) : q;
  }
};

__m512 e2m1_values() { return _mm512_setr_ps(0, 0.5F, 1, 1.5F, 2, 3, 4, 6, -0.0F, -0.5F, -1, -1.5F, -2, -3, -4, -6); }

__m512 int4_values(float offset) {
  return _mm512_sub_ps(_mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), _mm512_set1_ps(offset));
}

// Calls use(column of the run, weights) for `cols` columns.
template <CodeKind kCodes, ZeroPoint kZero, class Use>
void for_columns(const std::byte* codes, uint64_t cols, __m512 zeros, const Use& use) {
  if constexpr (kCodes == CodeKind::kE2M1 || kCodes == CodeKind::kInt4) {
    const FourBits bits{
        kCodes == CodeKind::kE2M1 ? e2m1_values() : int4_values(kZero == ZeroPoint::kNone ? 8.0F : 0.0F), zeros};
    for (uint64_t c = 0; c < cols; c += FourBits::kColumns, codes += 64) {
      const __m512i chunk = _mm512_loadu_si512(codes);
      for (size_t i = 0; i < 8; ++i) use(c + i, bits.value<kZero>(chunk, i));
    }
  } else if constexpr (kCodes == CodeKind::kInt8) {
    for (uint64_t c = 0; c < cols; c += 4, codes += 64) {
      const __m512i chunk = _mm512_loadu_si512(codes);
      for (size_t i = 0; i < 4; ++i) {
        const __m512i up = _mm512_slli_epi32(chunk, static_cast<unsigned>(24 - 8 * i));
        use(c + i, _mm512_cvtepi32_ps(_mm512_srai_epi32(up, 24)));
      }
    }
  } else if constexpr (kCodes == CodeKind::kBF16) {
    for (uint64_t c = 0; c < cols; c += 2, codes += 64) {
      const __m512i chunk = _mm512_loadu_si512(codes);
      use(c, _mm512_castsi512_ps(_mm512_slli_epi32(chunk, 16)));
      use(c + 1, _mm512_castsi512_ps(_mm512_and_si512(chunk, _mm512_set1_epi32(static_cast<int>(0xffff0000U)))));
    }
  } else if constexpr (kCodes == CodeKind::kE4M3) {
    const __m512 up = _mm512_set1_ps(256);  // as binary16 the same bits are 2^-8 of the value
    for (uint64_t c = 0; c < cols; c += 2, codes += 32) {
      const __m512i bytes = _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes)));
      // The sign to bit 15, the magnitude behind one zero bit: what the arithmetic shift copies is masked away.
      const __m512i halves = _mm512_and_si512(_mm512_srai_epi16(_mm512_slli_epi16(bytes, 8), 1),
                                              _mm512_set1_epi16(static_cast<short>(0xbf80)));
      use(c, _mm512_mul_ps(_mm512_cvtph_ps(_mm512_castsi512_si256(halves)), up));
      use(c + 1, _mm512_mul_ps(_mm512_cvtph_ps(_mm512_extracti64x4_epi64(halves, 1)), up));
    }
  } else {
    for (uint64_t c = 0; c < cols; ++c) use(c, _mm512_loadu_ps(codes + 64 * c));
  }
}

template <ScaleType kScale>
constexpr uint64_t scale_bytes() {
  return kScale == ScaleType::kNone                                 ? 0
         : kScale == ScaleType::kF32                                ? 64
         : kScale == ScaleType::kE8M0 || kScale == ScaleType::kE4M3 ? 16
                                                                    : 32;
}

// The scales of a tile: in front of its codes, apart, or 1.
template <ScaleType kScale>
__m512 tile_scales(const ResidentMatrix& matrix, const std::byte* tile, uint64_t group, uint64_t index,
                   __m512 multiplier) {
  const WeightLayout& layout = matrix.layout;
  if constexpr (kScale != ScaleType::kNone) {
    const __m512 scale = load_scales<kScale>(tile);
    return kHasMultiplier<kScale> ? _mm512_mul_ps(scale, multiplier) : scale;
  }
  if (layout.apart_cols == 0) return _mm512_set1_ps(1);
  const float* apart = matrix.apart(group) + index * layout.tile_cols / layout.apart_cols * layout.apart_lanes;
  return layout.apart_lanes == 1 ? _mm512_set1_ps(*apart) : _mm512_loadu_ps(apart);
}

// Some tokens by one or two row groups.
template <CodeKind kCodes, ScaleType kScale, ZeroPoint kZero, size_t kTokens, size_t kGroups>
class Block {
 public:
  Block(const PanelTask& task, uint64_t group, uint64_t first)
      : task_(task),
        layout_(task.weights->layout),
        group_(group),
        first_(first),
        multiplier_(_mm512_set1_ps(scale_multiplier<kScale>(task.weights->multiplier))) {
    for (size_t t = 0; t < kTokens; ++t) {
      const uint64_t row = task.row_of(first + t);
      x_[t] = task.f32.row(row);
      x_sums_[t] = kZero == ZeroPoint::kMin ? task.f32.run_sums + row * task.f32.runs : nullptr;
    }
    for (auto& of_group : acc_) {
      for (auto& of_token : of_group) of_token = _mm512_setzero_ps();
    }
  }

  void run() {
    const uint64_t tiles = layout_.tiles();
    for (uint64_t i = 0; i < tiles; ++i) {
      for (size_t g = 0; g < kGroups; ++g) add_tile(i, g);
    }
    for (size_t g = 0; g < kGroups; ++g) {
      const uint64_t row = (group_ + g) * kRowGroup;
      const auto rows = static_cast<__mmask16>((1U << std::min(kRowGroup, layout_.n - row)) - 1);
      for (size_t t = 0; t < kTokens; ++t) {
        _mm512_mask_storeu_ps(task_.out + (first_ + t) * task_.out_stride + row, rows, acc_[g][t]);
      }
    }
  }

 private:
  void add_tile(uint64_t index, size_t g) {
    const uint64_t tile_bytes = layout_.tile_bytes(), run = layout_.run_cols(), runs = layout_.tile_cols / run;
    const std::byte* tile = task_.weights->row_group(group_ + g) + index * tile_bytes;
    for (uint64_t line = 0; line < tile_bytes; line += 64) {
      _mm_prefetch(reinterpret_cast<const char*>(tile + kPrefetchBytes + line), _MM_HINT_T0);
    }
    const __m512 scale = tile_scales<kScale>(*task_.weights, tile, group_ + g, index, multiplier_);
    const std::byte* codes = tile + scale_bytes<kScale>();
    __m512 zeros = _mm512_setzero_ps();  // or minima
    if constexpr (kZero == ZeroPoint::kMin) {
      zeros = _mm512_loadu_ps(codes);
      codes += 4 * kRowGroup;
    }
    if constexpr (kZero == ZeroPoint::kCode) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes));
      zeros = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes));
      codes += kRowGroup;
    }
    const uint64_t run_bytes = layout_.code_bytes() / runs;
    for (uint64_t r = 0; r < runs; ++r) {
      add_run(codes + r * run_bytes, index * layout_.tile_cols + r * run, index * runs + r, g, scale, zeros);
    }
  }

  void add_run(const std::byte* codes, uint64_t column, uint64_t run, size_t g, __m512 scale, __m512 zeros) {
    __m512 sums[2][kTokens];
    for (size_t t = 0; t < kTokens; ++t) sums[0][t] = sums[1][t] = _mm512_setzero_ps();
    for_columns<kCodes, kZero>(codes, layout_.run_cols(), zeros, [&](uint64_t c, __m512 weights) {
      for (size_t t = 0; t < kTokens; ++t) {
        __m512& sum = sums[c % 2][t];
        sum = _mm512_fmadd_ps(weights, _mm512_set1_ps(x_[t][column + c]), sum);
      }
    });
    for (size_t t = 0; t < kTokens; ++t) {
      acc_[g][t] = _mm512_fmadd_ps(_mm512_add_ps(sums[0][t], sums[1][t]), scale, acc_[g][t]);
      if constexpr (kZero == ZeroPoint::kMin) {
        acc_[g][t] = _mm512_fmadd_ps(zeros, _mm512_set1_ps(x_sums_[t][run]), acc_[g][t]);
      }
    }
  }

  const PanelTask& task_;
  const WeightLayout layout_;
  uint64_t group_, first_;
  __m512 multiplier_;
  const float* x_[kTokens];
  const float* x_sums_[kTokens];
  __m512 acc_[kGroups][kTokens];
};

template <CodeKind kCodes, ScaleType kScale, ZeroPoint kZero, size_t kTokens, size_t kGroups>
void block(const PanelTask& task, uint64_t group, uint64_t first) {
  Block<kCodes, kScale, kZero, kTokens, kGroups>(task, group, first).run();
}

template <CodeKind kCodes, ScaleType kScale, ZeroPoint kZero = ZeroPoint::kNone>
void panel(const PanelTask& task) {
  uint64_t group = task.group_begin;
  for (; task.tokens == 1 && group + 2 <= task.group_end; group += 2) {
    block<kCodes, kScale, kZero, 1, 2>(task, group, 0);
  }
  for (; group < task.group_end; ++group) {
    uint64_t first = 0;
    for (; first + 8 <= task.tokens; first += 8) block<kCodes, kScale, kZero, 8, 1>(task, group, first);
    for (; first + 4 <= task.tokens; first += 4) block<kCodes, kScale, kZero, 4, 1>(task, group, first);
    for (; first < task.tokens; ++first) block<kCodes, kScale, kZero, 1, 1>(task, group, first);
  }
}

template <CodeKind kCodes, ZeroPoint kZero = ZeroPoint::kNone>
Panel by_scale(const WeightLayout& layout) {
  switch (layout.scale) {
    case ScaleType::kBF16: return panel<kCodes, ScaleType::kBF16, kZero>;
    case ScaleType::kF16: return panel<kCodes, ScaleType::kF16, kZero>;
    case ScaleType::kF32: return panel<kCodes, ScaleType::kF32, kZero>;
    default: return nullptr;
  }
}

Panel panel_of(const WeightLayout& layout) {
  switch (layout.codes) {
    case CodeKind::kE2M1:
      if (layout.scale == ScaleType::kE8M0) return panel<CodeKind::kE2M1, ScaleType::kE8M0>;
      if (layout.scale == ScaleType::kE4M3) return panel<CodeKind::kE2M1, ScaleType::kE4M3>;
      return nullptr;
    case CodeKind::kInt4:
      if (layout.zero == ZeroPoint::kCode) return by_scale<CodeKind::kInt4, ZeroPoint::kCode>(layout);
      if (layout.zero == ZeroPoint::kMin) return by_scale<CodeKind::kInt4, ZeroPoint::kMin>(layout);
      return by_scale<CodeKind::kInt4>(layout);
    case CodeKind::kInt8: return by_scale<CodeKind::kInt8>(layout);
    case CodeKind::kE4M3:
      if (layout.scale == ScaleType::kE8M0) return panel<CodeKind::kE4M3, ScaleType::kE8M0>;
      return layout.scale == ScaleType::kNone ? panel<CodeKind::kE4M3, ScaleType::kNone> : nullptr;
    case CodeKind::kBF16: return panel<CodeKind::kBF16, ScaleType::kNone>;
    case CodeKind::kF32: return panel<CodeKind::kF32, ScaleType::kNone>;
  }
  return nullptr;
}

std::string obstacle(const WeightLayout& layout) {
  return panel_of(layout) != nullptr ? "" : "no code for this pair of element and scale type";
}

std::string processor_lacks() { return best_isa() == Isa::kAvx512 ? "" : "AVX-512 (F, BW, VL, DQ, VBMI)"; }

}  // namespace

extern const Kernel kAvx512F32;
const Kernel kAvx512F32 = {"avx512", ActivationKind::kF32, 16, processor_lacks, panel_of, obstacle};

}  // namespace nibble
