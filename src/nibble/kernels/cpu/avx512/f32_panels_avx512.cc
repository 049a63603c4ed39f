// Weights of any layout by float32 activations, 16 rows a vector.
//
// A lane is a row. Four-bit codes are looked up in a register of 16 values, whose index needs no mask: a shift brings
// code i of each lane to the low four bits, so a column of 16 weights is a shift, a permutation and one FMA a token
// with a broadcast activation. Even and odd columns of a run are two chains (panel.h); of one token two row groups side
// by side make four, eight tokens sixteen. Activations lie side by side (token_block.h), so that one pointer serves all
// tokens.
//
// E4M3 is turned into binary16, two codes a word, where its bits are 2^-8 of its value; activations are multiplied by
// 256 to make up for it, so that each product is what it was. If one is too large for that, weights are multiplied.
#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "nibble/base/cpu_features.h"
#include "nibble/kernels/cpu/avx512/tile_avx512.h"
#include "nibble/kernels/cpu/panel_table.h"
#include "nibble/kernels/cpu/token_block.h"
#include "nibble/kernels/kernel.h"
#include "nibble/numerics/codec/bits.h"

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

constexpr float kHalfOfE4M3 = 256;  // an E4M3's value by that of the binary16 with its bits

// Calls use(column of the run, 0 for even ones and 1 for odd ones, weights) for `cols` columns. Weights are their
// values, or with `kScaled`, of E4M3 alone, those divided by kHalfOfE4M3.
template <CodeKind kCodes, ZeroPoint kZero, bool kScaled, class Use>
NIBBLE_VEC void for_columns(const std::byte* codes, uint64_t cols, __m512 zeros, const Use& use) {
  if constexpr (kCodes == CodeKind::kE2M1 || kCodes == CodeKind::kInt4) {
    const FourBits bits{
        kCodes == CodeKind::kE2M1 ? e2m1_values() : int4_values(kZero == ZeroPoint::kNone ? 8.0F : 0.0F), zeros};
    for (uint64_t c = 0; c < cols; c += FourBits::kColumns, codes += 64) {
      const __m512i chunk = _mm512_loadu_si512(codes);
      for (size_t i = 0; i < 8; ++i) use(c + i, i % 2, bits.value<kZero>(chunk, i));
    }
  } else if constexpr (kCodes == CodeKind::kInt8) {
    for (uint64_t c = 0; c < cols; c += 4, codes += 64) {
      const __m512i chunk = _mm512_loadu_si512(codes);
      for (size_t i = 0; i < 4; ++i) {
        const __m512i up = _mm512_slli_epi32(chunk, static_cast<unsigned>(24 - 8 * i));
        use(c + i, i % 2, _mm512_cvtepi32_ps(_mm512_srai_epi32(up, 24)));
      }
    }
  } else if constexpr (kCodes == CodeKind::kBF16) {
    for (uint64_t c = 0; c < cols; c += 2, codes += 64) {
      const __m512i chunk = _mm512_loadu_si512(codes);
      use(c, 0, _mm512_castsi512_ps(_mm512_slli_epi32(chunk, 16)));
      use(c + 1, 1, _mm512_castsi512_ps(_mm512_and_si512(chunk, _mm512_set1_epi32(static_cast<int>(0xffff0000U)))));
    }
  } else if constexpr (kCodes == CodeKind::kE4M3) {
    // The sign to bit 15, the magnitude behind one zero bit: what the arithmetic shift copies is masked away.
    const __m512i mask = _mm512_set1_epi16(static_cast<short>(0xbf80));
    const auto value = [](__m256i halves) {
      const __m512 small = _mm512_cvtph_ps(halves);
      return kScaled ? small : _mm512_mul_ps(small, _mm512_set1_ps(kHalfOfE4M3));
    };
    for (uint64_t c = 0; c < cols; c += 4, codes += 64) {
      const __m512i pairs = _mm512_loadu_si512(codes);
      const __m512i even = _mm512_and_si512(_mm512_srai_epi16(_mm512_slli_epi16(pairs, 8), 1), mask);
      const __m512i odd = _mm512_and_si512(_mm512_srai_epi16(pairs, 1), mask);
      use(c, 0, value(_mm512_castsi512_si256(even)));
      use(c + 1, 1, value(_mm512_castsi512_si256(odd)));
      use(c + 2, 0, value(_mm512_extracti64x4_epi64(even, 1)));
      use(c + 3, 1, value(_mm512_extracti64x4_epi64(odd, 1)));
    }
  } else {
    for (uint64_t c = 0; c < cols; c += 2, codes += 128) {
      use(c, 0, _mm512_loadu_ps(codes));
      use(c + 1, 1, _mm512_loadu_ps(codes + 64));
    }
  }
}

// Scales that lie apart, of one row group.
struct ApartScales {
  const float* at = nullptr;  // null: there are none
  uint64_t tile_cols = 0, cols = 0, lanes = 0;

  ApartScales() = default;
  ApartScales(const ResidentMatrix& matrix, uint64_t group)
      : at(matrix.layout.apart_cols == 0 ? nullptr : matrix.apart(group)),
        tile_cols(matrix.layout.tile_cols),
        cols(matrix.layout.apart_cols),
        lanes(matrix.layout.apart_lanes) {}
};

// The scales of a tile: in front of its codes, apart, or 1.
template <ScaleType kScale>
NIBBLE_VEC __m512 tile_scales(const ApartScales& apart, const std::byte* tile, uint64_t index, __m512 multiplier) {
  if constexpr (kScale != ScaleType::kNone) {
    const __m512 scale = load_scales<kScale>(tile);
    return kHasMultiplier<kScale> ? _mm512_mul_ps(scale, multiplier) : scale;
  }
  if (apart.at == nullptr) return _mm512_set1_ps(1);
  const float* at = apart.at + index * apart.tile_cols / apart.cols * apart.lanes;
  return apart.lanes == 1 ? _mm512_set1_ps(*at) : _mm512_loadu_ps(at);
}

// Zero points or minima of a tile.
template <ZeroPoint kZero>
NIBBLE_VEC __m512 tile_zeros(const std::byte* at) {
  if constexpr (kZero == ZeroPoint::kMin) return _mm512_loadu_ps(at);
  if constexpr (kZero == ZeroPoint::kNone) return _mm512_setzero_ps();
  return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at))));
}

// One run of columns of one row group for the tokens of a block, whose activations are at x.
template <CodeKind kCodes, ZeroPoint kZero, bool kScaled, size_t kTokens>
NIBBLE_VEC void add_run(const std::byte* codes, uint64_t cols, const float* x, __m512 scale, __m512 zeros,
                        __m512* acc) {
  __m512 sums[2][kTokens];
  for (size_t t = 0; t < kTokens; ++t) sums[0][t] = sums[1][t] = _mm512_setzero_ps();
  for_columns<kCodes, kZero, kScaled>(codes, cols, zeros, [&](uint64_t c, size_t parity, __m512 weights) {
    for (size_t t = 0; t < kTokens; ++t) {
      sums[parity][t] = _mm512_fmadd_ps(weights, _mm512_set1_ps(x[c * kTokens + t]), sums[parity][t]);
    }
  });
  for (size_t t = 0; t < kTokens; ++t) {
    acc[t] = _mm512_fmadd_ps(_mm512_add_ps(sums[0][t], sums[1][t]), scale, acc[t]);
    if constexpr (kZero == ZeroPoint::kMin) {
      acc[t] = _mm512_fmadd_ps(zeros, _mm512_set1_ps(x[cols * kTokens + t]), acc[t]);
    }
  }
}

// A block of tokens by one or two row groups. Not inlined: each instance has the registers for itself.
template <CodeKind kCodes, ScaleType kScale, ZeroPoint kZero, bool kScaled, size_t kTokens, size_t kGroups>
[[gnu::noinline]] void multiply(const PanelTask& task, const TokenBlock& block, uint64_t group) {
  const WeightLayout& layout = task.weights->layout;
  // Calls inside the loop would cost the sums their registers.
  const uint64_t tile_bytes = layout.tile_bytes(), group_bytes = layout.row_group_bytes(), tiles = layout.tiles();
  const uint64_t cols = layout.run_cols(), runs = layout.tile_cols / cols, run_bytes = layout.code_bytes() / runs;
  const uint64_t run_floats = kTokens * (cols + (kZero == ZeroPoint::kMin ? 1 : 0));
  const __m512 multiplier = _mm512_set1_ps(scale_multiplier<kScale>(task.weights->multiplier));
  __m512 acc[kGroups][kTokens];
  for (auto& of_group : acc) {
    for (auto& of_token : of_group) of_token = _mm512_setzero_ps();
  }
  const std::byte* at = task.weights->row_group(group);
  const auto* x = reinterpret_cast<const float*>(block.data);
  ApartScales apart[kGroups];
  for (size_t g = 0; g < kGroups; ++g) apart[g] = ApartScales(*task.weights, group + g);
  for (uint64_t i = 0; i < tiles; ++i, at += tile_bytes, x += runs * run_floats) {
    for (size_t g = 0; g < kGroups; ++g) {
      const std::byte* tile = at + g * group_bytes;
      for (uint64_t line = 0; line < tile_bytes; line += 64) {
        _mm_prefetch(reinterpret_cast<const char*>(tile + kPrefetchBytes + line), _MM_HINT_T0);
      }
      const __m512 scale = tile_scales<kScale>(apart[g], tile, i, multiplier);
      const std::byte* of_zeros = tile + tile_scale_bytes<kScale>();
      const std::byte* codes = of_zeros + tile_zero_bytes<kZero>();
      const __m512 zeros = tile_zeros<kZero>(of_zeros);
      for (uint64_t r = 0; r < runs; ++r) {
        add_run<kCodes, kZero, kScaled, kTokens>(codes + r * run_bytes, cols, x + r * run_floats, scale, zeros, acc[g]);
      }
    }
  }
  for (size_t g = 0; g < kGroups; ++g) {
    const uint64_t row = (group + g) * kRowGroup;
    const auto rows = static_cast<__mmask16>((1U << std::min(kRowGroup, layout.n - row)) - 1);
    for (size_t t = 0; t < std::min<uint64_t>(kTokens, block.count); ++t) {
      _mm512_mask_storeu_ps(task.out + (block.first + t) * task.out_stride + row, rows, acc[g][t]);
    }
  }
}

template <CodeKind kCodes, ScaleType kScale, ZeroPoint kZero, bool kScaled>
void panel_scaled(const PanelTask& task) {
  const auto interleave = [](const PanelTask& of, const TokenBlock& block, std::byte* out) {
    interleave_f32(of, block, kScaled ? kHalfOfE4M3 : 1.0F, out);
  };
  const auto multiply_block = [&](const TokenBlock& block, uint64_t group) -> uint64_t {
    const bool pair = task.tokens == 1 && group + 2 <= task.group_end;
    if (pair) multiply<kCodes, kScale, kZero, kScaled, 1, 2>(task, block, group);
    if (pair) return 2;
    switch (block.lanes) {
      case 1: multiply<kCodes, kScale, kZero, kScaled, 1, 1>(task, block, group); break;
      case 2: multiply<kCodes, kScale, kZero, kScaled, 2, 1>(task, block, group); break;
      case 4: multiply<kCodes, kScale, kZero, kScaled, 4, 1>(task, block, group); break;
      default: multiply<kCodes, kScale, kZero, kScaled, 8, 1>(task, block, group); break;
    }
    return 1;
  };
  for_token_blocks(task, {8, f32_run_bytes(task.weights->layout)}, interleave, multiply_block);
}

// Whether 256 times each activation of the task's tokens is a float32. NaN and infinities stay what they are.
bool may_be_scaled(const PanelTask& task) {
  const uint32_t most = float_bits(std::ldexp(1.0F, 119));
  uint32_t large = 0;
  for (uint64_t t = 0; t < task.tokens; ++t) {
    const float* x = task.f32.row(task.row_of(t));
    for (uint64_t c = 0; c < task.weights->layout.padded_k(); ++c) {
      const uint32_t magnitude = float_bits(x[c]) & 0x7fffffffU;
      large |= static_cast<uint32_t>(magnitude > most) & static_cast<uint32_t>(magnitude < kFloatInf);
    }
  }
  return large == 0;
}

struct Panels {
  static constexpr bool kFloats = true;
  template <CodeKind kCodes, ScaleType kScale, ZeroPoint kZero, size_t /*kRun*/>
  static void panel(const PanelTask& task) {
    if constexpr (kCodes == CodeKind::kE4M3) {
      if (may_be_scaled(task)) return panel_scaled<kCodes, kScale, kZero, true>(task);
    }
    panel_scaled<kCodes, kScale, kZero, false>(task);
  }
};

Panel panel_of(const WeightLayout& layout) { return panel_from_table<Panels>(layout); }

std::string obstacle(const WeightLayout& layout) {
  return panel_of(layout) != nullptr ? "" : "no code for this pair of element and scale type";
}

std::string processor_lacks() { return best_isa() == Isa::kAvx512 ? "" : "AVX-512 (F, BW, VL, DQ, VBMI)"; }

}  // namespace

extern const Kernel kAvx512F32;
const Kernel kAvx512F32 = {"avx512", ActivationKind::kF32, 16, processor_lacks, panel_of, obstacle};

}  // namespace nibble
