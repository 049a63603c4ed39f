// Integer weights by INT8 activations, 16 rows a vector, with dot products of four bytes (AVX-512 VNNI).
//
// A lane is a row and holds four columns of it, so a run of 32 columns is eight vpdpbusd, each with one 4-byte
// broadcast of the activations, into one sum of 32-bit integers; then one conversion, one product of scales and one
// FMA. Weights are made unsigned: INT4 as it is stored, E2M1 by a byte shuffle into 2 q + 12; sums start from the
// activations' correction.
//
// Few tokens: the memory binds. Two row groups are walked side by side and a tile is asked for some KiB ahead, since
// what a single stream lacks is reads in flight. Many tokens: arithmetic binds. Of a run's two dot products a cycle
// three more operations a token take their share (conversion, product of scales, FMA), and unpacking, once for twelve
// tokens; twelve sums are independent chains that hide vpdpbusd's latency. Activations lie side by side
// (token_block.h), so that one pointer serves all tokens.
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>

#include "nibble/base/cpu_features.h"
#include "nibble/kernels/cpu/avx512/tile_avx512.h"
#include "nibble/kernels/cpu/panel_table.h"
#include "nibble/kernels/cpu/token_block.h"
#include "nibble/kernels/kernel.h"

namespace nibble {
namespace {

// Each kind of codes: vectors 2 i and 2 i + 1 of a run, four columns of 16 rows each. Those of the second may be
// 2^kSecondShift times too large if the caller divides their sum.
struct E2M1Codes {
  static constexpr uint64_t kPairBytes = 64;
  static constexpr int kSecondShift = 0;
  template <bool kShifted>
  static void unpack(const std::byte* at, __m512i* out) {
    // 2 q + 12 of the codes 0 to 15, four times: the permutation looks at six bits, of which two are the neighbour's.
    const __m512i values =
        _mm512_broadcast_i32x4(_mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0));
    const __m512i codes = _mm512_loadu_si512(at);
    out[0] = _mm512_permutexvar_epi8(codes, values);
    out[1] = _mm512_permutexvar_epi8(_mm512_srli_epi16(codes, 4), values);
  }
};

struct Int4Codes {
  static constexpr uint64_t kPairBytes = 64;
  static constexpr int kSecondShift = 4;
  template <bool kShifted>
  static void unpack(const std::byte* at, __m512i* out) {
    const __m512i low = _mm512_set1_epi8(0x0f), codes = _mm512_loadu_si512(at);
    out[0] = _mm512_and_si512(codes, low);
    out[1] = kShifted ? _mm512_andnot_si512(low, codes) : _mm512_and_si512(_mm512_srli_epi16(codes, 4), low);
  }
};

struct Int8Codes {
  static constexpr uint64_t kPairBytes = 128;
  static constexpr int kSecondShift = 0;
  template <bool kShifted>
  static void unpack(const std::byte* at, __m512i* out) {
    const __m512i sign = _mm512_set1_epi8(static_cast<char>(0x80));
    out[0] = _mm512_xor_si512(_mm512_loadu_si512(at), sign);
    out[1] = _mm512_xor_si512(_mm512_loadu_si512(at + 64), sign);
  }
};

template <CodeKind kCodes>
using CodesOf = std::conditional_t<kCodes == CodeKind::kE2M1, E2M1Codes,
                                   std::conditional_t<kCodes == CodeKind::kInt4, Int4Codes, Int8Codes>>;

__m512i broadcast(const std::byte* words, size_t index) {
  int32_t word = 0;
  std::memcpy(&word, words + 4 * index, sizeof(word));
  return _mm512_set1_epi32(word);
}

__m512 broadcast_float(const std::byte* words, size_t index) { return _mm512_castsi512_ps(broadcast(words, index)); }

// What a run's sums start from: corrections, or zero points times sums.
template <ScaleType kScale, ZeroPoint kZero>
__m512i start(const IntegerTile<kScale, kZero>& tile, __m512i word) {
  if constexpr (kZero != ZeroPoint::kCode) return word;
  return _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_mullo_epi32(tile.zeros, word));
}

// Where a run's activations are: a block's, side by side, or of one token where they lie anyway.
template <ZeroPoint kZero, size_t kRun, size_t kTokens>
struct RunOfBlock {
  static constexpr uint64_t kWords = kRun / 4 * kTokens;
  static constexpr uint64_t kStride = 4 * (kWords + kTokens * (kZero == ZeroPoint::kMin ? 3 : 2));
  const std::byte* at;

  RunOfBlock(const PanelTask&, const TokenBlock& block) : at(block.data) {}
  const std::byte* codes() const { return at; }
  const std::byte* starts() const { return at + 4 * kWords; }
  const std::byte* scales() const { return at + 4 * (kWords + kTokens); }
  float min_factor(size_t t) const { return _mm512_cvtss_f32(broadcast_float(at, kWords + 2 * kTokens + t)); }
  void next() { at += kStride; }
};

template <ZeroPoint kZero, size_t kRun>
struct RunOfToken {
  const int8_t* code;
  const int32_t *start, *sum;
  const float* scale;

  RunOfToken(const PanelTask& task, const TokenBlock& block) {
    const Int8Activations& x = task.int8;
    const uint64_t row = task.row_of(block.first);
    code = x.codes + row * x.padded_k;
    sum = kZero == ZeroPoint::kNone ? nullptr : x.sums + row * x.groups;
    start = kZero == ZeroPoint::kCode ? sum : x.corrections + row * x.groups;
    scale = x.scales + row * x.groups;
  }
  const std::byte* codes() const { return reinterpret_cast<const std::byte*>(code); }
  const std::byte* starts() const { return reinterpret_cast<const std::byte*>(start); }
  const std::byte* scales() const { return reinterpret_cast<const std::byte*>(scale); }
  float min_factor(size_t) const { return *scale * static_cast<float>(*sum); }
  void next() {
    code += kRun;
    ++start;
    ++scale;
    if constexpr (kZero != ZeroPoint::kNone) ++sum;
  }
};

template <ZeroPoint kZero, size_t kRun, size_t kTokens>
using RunOf = std::conditional_t<kTokens == 1, RunOfToken<kZero, kRun>, RunOfBlock<kZero, kRun, kTokens>>;

// One run of columns of one row group for the tokens of a block.
template <class Codes, ScaleType kScale, ZeroPoint kZero, size_t kRun, size_t kTokens>
NIBBLE_VEC void add_run(const IntegerTile<kScale, kZero>& tile, const std::byte* codes,
                        const RunOf<kZero, kRun, kTokens>& x, __m512* acc) {
  // Few tokens have two chains each: integers may be summed in any order.
  constexpr size_t kChains = kTokens <= 2 ? 2 : 1;
  __m512i sums[kChains][kTokens];
  for (size_t t = 0; t < kTokens; ++t) {
    sums[0][t] = start(tile, broadcast(x.starts(), t));
    if constexpr (kChains == 2) sums[1][t] = _mm512_setzero_si512();
  }
#pragma GCC unroll 4
  for (size_t w = 0; w < kRun / 4; w += 2) {
    __m512i weights[2];
    Codes::template unpack<kChains == 2>(codes + w / 2 * Codes::kPairBytes, weights);
    for (size_t i = 0; i < 2; ++i) {
      for (size_t t = 0; t < kTokens; ++t) {
        __m512i& sum = sums[i % kChains][t];
        sum = _mm512_dpbusd_epi32(sum, weights[i], broadcast(x.codes(), (w + i) * kTokens + t));
      }
    }
  }
  for (size_t t = 0; t < kTokens; ++t) {
    __m512i sum = sums[0][t];
    if constexpr (kChains == 2) sum = _mm512_add_epi32(sum, _mm512_srai_epi32(sums[1][t], Codes::kSecondShift));
    const __m512 scale = _mm512_mul_ps(tile.scale, broadcast_float(x.scales(), t));
    acc[t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), scale, acc[t]);
    if constexpr (kZero == ZeroPoint::kMin) {
      acc[t] = _mm512_fmadd_ps(tile.mins, _mm512_set1_ps(x.min_factor(t)), acc[t]);
    }
  }
}

template <class Codes, ScaleType kScale, ZeroPoint kZero, size_t kRun, size_t kTokens, size_t kGroups>
[[gnu::noinline]] void multiply(const PanelTask& task, const TokenBlock& block,
                                const std::array<uint64_t, kGroups>& groups) {
  constexpr uint64_t kRunBytes = kRun / 8 * Codes::kPairBytes;
  const WeightLayout& layout = task.weights->layout;
  // Calls inside the loop would cost the sums their registers.
  const uint64_t tile_bytes = layout.tile_bytes(), tiles = layout.tiles(), runs = layout.tile_cols / kRun;
  const __m512 multiplier = _mm512_set1_ps(scale_multiplier<kScale>(task.weights->multiplier));
  __m512 acc[kGroups][kTokens];
  for (auto& of_group : acc) {
    for (auto& of_token : of_group) of_token = _mm512_setzero_ps();
  }
  const std::byte* tiles_at[kGroups];
  for (size_t g = 0; g < kGroups; ++g) tiles_at[g] = task.weights->row_group(groups[g]);
  RunOf<kZero, kRun, kTokens> x(task, block);
  for (uint64_t t = 0; t < tiles; ++t) {
    const auto of_tile = x;
    for (size_t g = 0; g < kGroups; ++g) {
      x = of_tile;
      const std::byte* of_group = tiles_at[g];
      tiles_at[g] += tile_bytes;
      prefetch_behind(of_group, tile_bytes);
      const IntegerTile<kScale, kZero> tile(of_group, multiplier);
      for (uint64_t r = 0; r < runs; ++r, x.next()) {
        add_run<Codes, kScale, kZero, kRun, kTokens>(tile, tile.codes + r * kRunBytes, x, acc[g]);
      }
    }
  }
  for (size_t g = 0; g < kGroups; ++g) {
    for (size_t t = 0; t < std::min<uint64_t>(kTokens, block.count); ++t) {
      store_rows(task, groups[g], block.first + t, acc[g][t]);
    }
  }
}

// Tokens of one block that memory binds: two row groups side by side.
template <class Codes, ScaleType kScale, ZeroPoint kZero, size_t kRun, size_t kTokens>
void multiply_few(const PanelTask& task, const TokenBlock& block) {
  for_pairs_of_groups(
      task,
      [&](uint64_t group, uint64_t other) {
        multiply<Codes, kScale, kZero, kRun, kTokens, 2>(task, block, {group, other});
      },
      [&](uint64_t group) { multiply<Codes, kScale, kZero, kRun, kTokens, 1>(task, block, {group}); });
}

template <class Codes, ScaleType kScale, ZeroPoint kZero, size_t kRun>
void multiply_group(const PanelTask& task, const TokenBlock& block, uint64_t group) {
  switch (block.lanes) {
    case 1: return multiply<Codes, kScale, kZero, kRun, 1, 1>(task, block, {group});
    case 2: return multiply<Codes, kScale, kZero, kRun, 2, 1>(task, block, {group});
    case 4: return multiply<Codes, kScale, kZero, kRun, 4, 1>(task, block, {group});
    case 8: return multiply<Codes, kScale, kZero, kRun, 8, 1>(task, block, {group});
    default: return multiply<Codes, kScale, kZero, kRun, 12, 1>(task, block, {group});
  }
}

template <class Codes, ScaleType kScale, ZeroPoint kZero, size_t kRun>
void panel(const PanelTask& task) {
  const auto multiply_blocks = [&](std::span<const TokenBlock> blocks) {
    if (task.tokens == 1) return multiply_few<Codes, kScale, kZero, kRun, 1>(task, blocks[0]);
    if (task.tokens == 2) return multiply_few<Codes, kScale, kZero, kRun, 2>(task, blocks[0]);
    if (task.tokens <= 4) return multiply_few<Codes, kScale, kZero, kRun, 4>(task, blocks[0]);
    for (uint64_t group = task.group_begin; group < task.group_end; ++group) {
      for (const TokenBlock& block : blocks) multiply_group<Codes, kScale, kZero, kRun>(task, block, group);
    }
  };
  const BlockShape shape{.widest = 12, .run_bytes = int8_run_bytes(task.weights->layout), .one_copied = false};
  for_token_blocks(task, shape, interleave_int8, multiply_blocks);
}

struct Panels {
  static constexpr bool kFloats = false;
  template <CodeKind kCodes, ScaleType kScale, ZeroPoint kZero, size_t kRun>
  static void panel(const PanelTask& task) {
    nibble::panel<CodesOf<kCodes>, kScale, kZero, kRun>(task);
  }
};

std::string processor_lacks() { return has_avx512_vnni() ? "" : "AVX-512 VNNI"; }

}  // namespace

extern const Kernel kAvx512VnniInt8;
const Kernel kAvx512VnniInt8 = {"avx512-vnni",   ActivationKind::kInt8,    128,
                                processor_lacks, panel_from_table<Panels>, obstacle_from_table<Panels>};

}  // namespace nibble
