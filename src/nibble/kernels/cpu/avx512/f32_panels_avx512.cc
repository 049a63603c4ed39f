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
#include <array>
#include <cmath>
#include <span>
#include <string>

#include "nibble/base/cpu_features.h"
#include "nibble/kernels/cpu/avx512/tile_avx512.h"
#include "nibble/kernels/cpu/panel_table.h"
#include "nibble/kernels/cpu/token_block.h"
#include "nibble/kernels/kernel.h"
#include "nibble/numerics/codec/bits.h"

namespace nibble {
namespace {

__m512 e2m1_values() { return _mm512_setr_ps(0, 0.5F, 1, 1.5F, 2, 3, 4, 6, -0.0F, -0.5F, -1, -1.5F, -2, -3, -4, -6); }

__m512 int4_values(float offset) {
  return _mm512_sub_ps(_mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), _mm512_set1_ps(offset));
}

constexpr float kHalfOfE4M3 = 256;  // an E4M3's value by that of the binary16 with its bits

// Sixteen binary16 to float32. From memory this is one operation; from a register a second one moves the halves, and
// that bound E4M3. Written out, since the compiler would take the register.
NIBBLE_VEC __m512 convert_from_memory(const __m256i& halves) {
  __m512 out;
  __asm__("vcvtph2ps %1, %0" : "=v"(out) : "m"(halves));
  return out;
}

// Columns and bytes of a chunk of codes.
template <CodeKind kCodes>
inline constexpr uint64_t kChunkColumns = kCodes == CodeKind::kE2M1 || kCodes == CodeKind::kInt4   ? 8
                                          : kCodes == CodeKind::kInt8 || kCodes == CodeKind::kE4M3 ? 4
                                                                                                   : 2;
template <CodeKind kCodes>
inline constexpr uint64_t kChunkBytes = kCodes == CodeKind::kF32 ? 128 : 64;

// Sixteen rows of each column of a chunk. Weights are their values, or with `kScaled`, of E4M3 alone, those divided by
// kHalfOfE4M3.
template <CodeKind kCodes, ZeroPoint kZero, bool kScaled>
NIBBLE_VEC void load_chunk(const std::byte* codes, __m512 zeros, __m512* out) {
  if constexpr (kCodes == CodeKind::kF32) {
    for (size_t i = 0; i < 2; ++i) out[i] = _mm512_loadu_ps(codes + 64 * i);
    return;
  }
  const __m512i chunk = _mm512_loadu_si512(codes);
  if constexpr (kCodes == CodeKind::kE2M1 || kCodes == CodeKind::kInt4) {
    const __m512 values =
        kCodes == CodeKind::kE2M1 ? e2m1_values() : int4_values(kZero == ZeroPoint::kNone ? 8.0F : 0.0F);
    for (size_t i = 0; i < 8; ++i) {
      out[i] = _mm512_permutexvar_ps(_mm512_srli_epi32(chunk, static_cast<unsigned>(4 * i)), values);
      if constexpr (kZero == ZeroPoint::kCode) out[i] = _mm512_sub_ps(out[i], zeros);
    }
  } else if constexpr (kCodes == CodeKind::kInt8) {
    for (size_t i = 0; i < 4; ++i) {
      const __m512i up = _mm512_slli_epi32(chunk, static_cast<unsigned>(24 - 8 * i));
      out[i] = _mm512_cvtepi32_ps(_mm512_srai_epi32(up, 24));
    }
  } else if constexpr (kCodes == CodeKind::kBF16) {
    out[0] = _mm512_castsi512_ps(_mm512_slli_epi32(chunk, 16));
    out[1] = _mm512_castsi512_ps(_mm512_and_si512(chunk, _mm512_set1_epi32(static_cast<int>(0xffff0000U))));
  } else if constexpr (kCodes == CodeKind::kE4M3) {
    // The sign to bit 15, the magnitude behind one zero bit: what the arithmetic shift copies is masked away.
    const __m512i mask = _mm512_set1_epi16(static_cast<short>(0xbf80));
    alignas(64) __m256i even[2], odd[2];
    _mm512_store_si512(even, _mm512_and_si512(_mm512_srai_epi16(_mm512_slli_epi16(chunk, 8), 1), mask));
    _mm512_store_si512(odd, _mm512_and_si512(_mm512_srai_epi16(chunk, 1), mask));
    for (size_t i = 0; i < 4; ++i) {
      out[i] = convert_from_memory(i % 2 == 0 ? even[i / 2] : odd[i / 2]);
      if constexpr (!kScaled) out[i] = _mm512_mul_ps(out[i], _mm512_set1_ps(kHalfOfE4M3));
    }
  }
}

// Scales that lie apart, of one row group, tile after tile.
class ApartScales {
 public:
  ApartScales() = default;
  ApartScales(const ResidentMatrix& matrix, uint64_t group) {
    const WeightLayout& layout = matrix.layout;
    if (layout.apart_cols == 0) return;
    at_ = matrix.apart(group);
    lanes_ = layout.apart_lanes;
    tiles_ = left_ = layout.apart_cols / layout.tile_cols;
  }
  // Of the next tile; 1 if there are none.
  __attribute__((always_inline)) __m512 next() {
    if (at_ == nullptr) return _mm512_set1_ps(1);
    const __m512 scales = lanes_ == 1 ? _mm512_set1_ps(*at_) : _mm512_loadu_ps(at_);
    if (--left_ == 0) {
      at_ += lanes_;
      left_ = tiles_;
    }
    return scales;
  }

 private:
  const float* at_ = nullptr;
  uint64_t lanes_ = 0, tiles_ = 0, left_ = 0;  // tiles of a scale
};

// The scales of a tile: in front of its codes, apart, or 1.
template <ScaleType kScale>
NIBBLE_VEC __m512 tile_scales(ApartScales* apart, const std::byte* tile, __m512 multiplier) {
  if constexpr (kScale == ScaleType::kNone) return apart->next();
  const __m512 scale = load_scales<kScale>(tile);
  return kHasMultiplier<kScale> ? _mm512_mul_ps(scale, multiplier) : scale;
}

// Zero points or minima of a tile.
template <ZeroPoint kZero>
NIBBLE_VEC __m512 tile_zeros(const std::byte* at) {
  if constexpr (kZero == ZeroPoint::kMin) return _mm512_loadu_ps(at);
  if constexpr (kZero == ZeroPoint::kNone) return _mm512_setzero_ps();
  return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at))));
}

// A tile of one row group.
struct FloatTile {
  __m512 scale, zeros;
  const std::byte* codes;
};

// One run of columns of some row groups for the tokens of a block, whose activations are at x. The groups go through
// the columns together: one token's two chains alone would wait for each other.
template <CodeKind kCodes, ZeroPoint kZero, bool kScaled, size_t kTokens, size_t kGroups>
NIBBLE_VEC void add_run(const FloatTile* tiles, uint64_t offset, uint64_t cols, const float* x,
                        __m512 (*acc)[kTokens]) {
  constexpr uint64_t kColumns = kChunkColumns<kCodes>;
  __m512 sums[kGroups][2][kTokens];
  for (size_t g = 0; g < kGroups; ++g) {
    for (size_t t = 0; t < kTokens; ++t) sums[g][0][t] = sums[g][1][t] = _mm512_setzero_ps();
  }
  for (uint64_t c = 0; c < cols; c += kColumns, offset += kChunkBytes<kCodes>) {
    for (size_t g = 0; g < kGroups; ++g) {
      __m512 weights[kColumns];
      load_chunk<kCodes, kZero, kScaled>(tiles[g].codes + offset, tiles[g].zeros, weights);
      for (size_t i = 0; i < kColumns; ++i) {
        for (size_t t = 0; t < kTokens; ++t) {
          __m512& sum = sums[g][i % 2][t];
          sum = _mm512_fmadd_ps(weights[i], _mm512_set1_ps(x[(c + i) * kTokens + t]), sum);
        }
      }
    }
  }
  for (size_t g = 0; g < kGroups; ++g) {
    for (size_t t = 0; t < kTokens; ++t) {
      acc[g][t] = _mm512_fmadd_ps(_mm512_add_ps(sums[g][0][t], sums[g][1][t]), tiles[g].scale, acc[g][t]);
      if constexpr (kZero == ZeroPoint::kMin) {
        acc[g][t] = _mm512_fmadd_ps(tiles[g].zeros, _mm512_set1_ps(x[cols * kTokens + t]), acc[g][t]);
      }
    }
  }
}

// A block of tokens by one or two row groups. Not inlined: each instance has the registers for itself.
template <CodeKind kCodes, ScaleType kScale, ZeroPoint kZero, bool kScaled, size_t kTokens, size_t kGroups>
[[gnu::noinline]] void multiply(const PanelTask& task, const TokenBlock& block,
                                const std::array<uint64_t, kGroups>& groups) {
  const WeightLayout& layout = task.weights->layout;
  // Calls inside the loop would cost the sums their registers.
  const uint64_t tile_bytes = layout.tile_bytes(), tiles = layout.tiles();
  const uint64_t cols = layout.run_cols(), runs = layout.tile_cols / cols, run_bytes = layout.code_bytes() / runs;
  const uint64_t run_floats = kTokens * (cols + (kZero == ZeroPoint::kMin ? 1 : 0));
  const __m512 multiplier = _mm512_set1_ps(scale_multiplier<kScale>(task.weights->multiplier));
  __m512 acc[kGroups][kTokens];
  for (auto& of_group : acc) {
    for (auto& of_token : of_group) of_token = _mm512_setzero_ps();
  }
  const std::byte* tiles_at[kGroups];
  const auto* x = reinterpret_cast<const float*>(block.data);
  ApartScales apart[kGroups];
  for (size_t g = 0; g < kGroups; ++g) {
    tiles_at[g] = task.weights->row_group(groups[g]);
    apart[g] = ApartScales(*task.weights, groups[g]);
  }
  for (uint64_t i = 0; i < tiles; ++i, x += runs * run_floats) {
    FloatTile of_groups[kGroups];
    for (size_t g = 0; g < kGroups; ++g) {
      const std::byte* tile = tiles_at[g];
      tiles_at[g] += tile_bytes;
      prefetch_behind(tile, tile_bytes);
      const std::byte* of_zeros = tile + tile_scale_bytes<kScale>();
      of_groups[g] = {tile_scales<kScale>(&apart[g], tile, multiplier), tile_zeros<kZero>(of_zeros),
                      of_zeros + tile_zero_bytes<kZero>()};
    }
    for (uint64_t r = 0; r < runs; ++r) {
      add_run<kCodes, kZero, kScaled, kTokens, kGroups>(of_groups, r * run_bytes, cols, x + r * run_floats, acc);
    }
  }
  for (size_t g = 0; g < kGroups; ++g) {
    for (size_t t = 0; t < std::min<uint64_t>(kTokens, block.count); ++t) {
      store_rows(task, groups[g], block.first + t, acc[g][t]);
    }
  }
}

template <CodeKind kCodes, ScaleType kScale, ZeroPoint kZero, bool kScaled>
void panel_scaled(const PanelTask& task) {
  const auto interleave = [](const PanelTask& of, const TokenBlock& block, std::byte* out) {
    interleave_f32(of, block, kScaled ? kHalfOfE4M3 : 1.0F, out);
  };
  const auto multiply_group = [&](const TokenBlock& block, uint64_t group) {
    switch (block.lanes) {
      case 1: return multiply<kCodes, kScale, kZero, kScaled, 1, 1>(task, block, {group});
      case 2: return multiply<kCodes, kScale, kZero, kScaled, 2, 1>(task, block, {group});
      case 4: return multiply<kCodes, kScale, kZero, kScaled, 4, 1>(task, block, {group});
      default: return multiply<kCodes, kScale, kZero, kScaled, 8, 1>(task, block, {group});
    }
  };
  const auto multiply_blocks = [&](std::span<const TokenBlock> blocks) {
    if (task.tokens == 1) {
      return for_pairs_of_groups(
          task,
          [&](uint64_t group, uint64_t other) {
            multiply<kCodes, kScale, kZero, kScaled, 1, 2>(task, blocks[0], {group, other});
          },
          [&](uint64_t group) { multiply_group(blocks[0], group); });
    }
    for (uint64_t group = task.group_begin; group < task.group_end; ++group) {
      for (const TokenBlock& block : blocks) multiply_group(block, group);
    }
  };
  for_token_blocks(task, {8, f32_run_bytes(task.weights->layout)}, interleave, multiply_blocks);
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

std::string processor_lacks() { return best_isa() == Isa::kAvx512 ? "" : "AVX-512 (F, BW, VL, DQ, VBMI)"; }

}  // namespace

extern const Kernel kAvx512F32;
const Kernel kAvx512F32 = {"avx512",        ActivationKind::kF32,     16,
                           processor_lacks, panel_from_table<Panels>, obstacle_from_table<Panels>};

}  // namespace nibble
