// Integer weights by INT8 activations, 16 rows a vector, with dot products of four bytes (AVX-512 VNNI).
//
// A lane is a row and holds four columns of it, so a run of 32 columns is eight vpdpbusd, each with one 4-byte
// broadcast of the activations, into one sum of 32-bit integers; then one conversion, one product of scales and one
// FMA. Weights are made unsigned: INT4 as it is stored, E2M1 by a byte shuffle into 2 q + 12; sums start from the
// activations' correction.
//
// Few tokens: the memory binds. Two row groups are walked side by side and a tile is asked for some KiB ahead, since
// what a single stream lacks is reads in flight. Many tokens: arithmetic binds. A tile's codes are unpacked once into
// eight registers and multiplied by up to eight tokens; their sums are independent chains that hide vpdpbusd's latency.
#include <immintrin.h>

#include <algorithm>
#include <string>

#include "nibble/base/cpu_features.h"
#include "nibble/kernels/cpu/avx512/tile_scales_avx512.h"
#include "nibble/kernels/kernel.h"

namespace nibble {
namespace {

constexpr uint64_t kPrefetchBytes = 3072;

struct E2M1Codes {
  static constexpr size_t kVectors = 8;  // of 32 columns
  static constexpr uint64_t kBytes = 256;
  static void unpack(const std::byte* at, __m512i* out, size_t vectors) {
    const __m512i low = _mm512_set1_epi8(0x0f);
    // 2 q + 12 of the codes 0 to 15.
    const __m512i values =
        _mm512_broadcast_i32x4(_mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0));
    for (size_t v = 0; v < vectors; v += 2) {
      const __m512i codes = _mm512_loadu_si512(at + 32 * v);
      out[v] = _mm512_shuffle_epi8(values, _mm512_and_si512(codes, low));
      out[v + 1] = _mm512_shuffle_epi8(values, _mm512_and_si512(_mm512_srli_epi16(codes, 4), low));
    }
  }
};

struct Int4Codes {
  static constexpr size_t kVectors = 8;
  static constexpr uint64_t kBytes = 256;
  static void unpack(const std::byte* at, __m512i* out, size_t vectors) {
    const __m512i low = _mm512_set1_epi8(0x0f);
    for (size_t v = 0; v < vectors; v += 2) {
      const __m512i codes = _mm512_loadu_si512(at + 32 * v);
      out[v] = _mm512_and_si512(codes, low);
      out[v + 1] = _mm512_and_si512(_mm512_srli_epi16(codes, 4), low);
    }
  }
};

struct Int8Codes {
  static constexpr size_t kVectors = 8;
  static constexpr uint64_t kBytes = 512;
  static void unpack(const std::byte* at, __m512i* out, size_t vectors) {
    const __m512i sign = _mm512_set1_epi8(static_cast<char>(0x80));
    for (size_t v = 0; v < vectors; ++v) out[v] = _mm512_xor_si512(_mm512_loadu_si512(at + 64 * v), sign);
  }
};

// One tile's place in memory, and its scales.
template <ScaleType kScale, ZeroPoint kZero>
struct Tile {
  __m512 scale;
  __m512i zeros;
  __m512 mins;
  const std::byte* codes;

  Tile(const std::byte* at, __m512 multiplier) {
    constexpr uint64_t kScaleBytes = kScale == ScaleType::kF32    ? 64
                                     : kScale == ScaleType::kE8M0 ? 16
                                     : kScale == ScaleType::kE4M3 ? 16
                                                                  : 32;
    scale = load_scales<kScale>(at);
    if constexpr (kHasMultiplier<kScale>) scale = _mm512_mul_ps(scale, multiplier);
    codes = at + kScaleBytes;
    if constexpr (kZero == ZeroPoint::kCode) {
      zeros = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes)));
      codes += kRowGroup;
    }
    if constexpr (kZero == ZeroPoint::kMin) {
      mins = _mm512_loadu_ps(codes);
      codes += 4 * kRowGroup;
    }
  }
};

// The activations of up to eight tokens.
template <size_t kTokens>
struct Columns {
  const int8_t* codes[kTokens];
  const float* scales[kTokens];
  const int32_t* corrections[kTokens];
  const int32_t* sums[kTokens];

  Columns(const PanelTask& task, uint64_t first) {
    for (size_t t = 0; t < kTokens; ++t) {
      const uint64_t row = task.row_of(first + t);
      codes[t] = task.int8.codes + row * task.int8.padded_k;
      scales[t] = task.int8.scales + row * task.int8.groups;
      corrections[t] = task.int8.corrections + row * task.int8.groups;
      sums[t] = task.int8.sums == nullptr ? nullptr : task.int8.sums + row * task.int8.groups;
    }
  }
};

__m512i broadcast4(const int8_t* at) { return _mm512_set1_epi32(*reinterpret_cast<const int32_t*>(at)); }

// One run of columns of one row group for kTokens tokens.
template <class Codes, ScaleType kScale, ZeroPoint kZero, size_t kRun, size_t kTokens>
void add_run(const Tile<kScale, kZero>& tile, uint64_t offset, const Columns<kTokens>& x, uint64_t run, __m512* acc) {
  constexpr size_t kVectors = Codes::kVectors * kRun / 32;
  __m512i weights[kVectors];
  Codes::unpack(tile.codes + offset, weights, kVectors);
  for (size_t t = 0; t < kTokens; ++t) {
    __m512i sum;
    if constexpr (kZero == ZeroPoint::kCode) {
      sum = _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_mullo_epi32(tile.zeros, _mm512_set1_epi32(x.sums[t][run])));
    } else {
      sum = _mm512_set1_epi32(x.corrections[t][run]);
    }
    const int8_t* codes = x.codes[t] + run * kRun;
    for (size_t v = 0; v < kVectors; ++v) sum = _mm512_dpbusd_epi32(sum, weights[v], broadcast4(codes + 4 * v));
    const __m512 scale = _mm512_mul_ps(tile.scale, _mm512_set1_ps(x.scales[t][run]));
    acc[t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), scale, acc[t]);
    if constexpr (kZero == ZeroPoint::kMin) {
      const float a = x.scales[t][run] * static_cast<float>(x.sums[t][run]);
      acc[t] = _mm512_fmadd_ps(tile.mins, _mm512_set1_ps(a), acc[t]);
    }
  }
}

void store(const PanelTask& task, uint64_t group, uint64_t token, __m512 values) {
  const uint64_t row = group * kRowGroup;
  const uint64_t rows = std::min(kRowGroup, task.weights->layout.n - row);
  _mm512_mask_storeu_ps(task.out + token * task.out_stride + row, static_cast<__mmask16>((1U << rows) - 1), values);
}

template <class Codes, ScaleType kScale, ZeroPoint kZero, size_t kRun, size_t kTokens, size_t kGroups>
void block(const PanelTask& task, uint64_t group, uint64_t first) {
  const WeightLayout& layout = task.weights->layout;
  const uint64_t tile_bytes = layout.tile_bytes(), tiles = layout.tiles(), runs = layout.tile_cols / kRun;
  const Columns<kTokens> x(task, first);
  const __m512 multiplier = _mm512_set1_ps(scale_multiplier<kScale>(task.weights->multiplier));
  __m512 acc[kGroups][kTokens];
  for (auto& of_group : acc) {
    for (auto& of_token : of_group) of_token = _mm512_setzero_ps();
  }
  const std::byte* at = task.weights->row_group(group);
  for (uint64_t t = 0; t < tiles; ++t, at += tile_bytes) {
    for (size_t g = 0; g < kGroups; ++g) {
      const std::byte* of_group = at + g * layout.row_group_bytes();
      for (uint64_t line = 0; line < tile_bytes; line += 64) {
        _mm_prefetch(reinterpret_cast<const char*>(of_group + kPrefetchBytes + line), _MM_HINT_T0);
      }
      const Tile<kScale, kZero> tile(of_group, multiplier);
      for (uint64_t r = 0; r < runs; ++r) {
        add_run<Codes, kScale, kZero, kRun, kTokens>(tile, r * Codes::kBytes * kRun / 32, x, t * runs + r, acc[g]);
      }
    }
  }
  for (size_t g = 0; g < kGroups; ++g) {
    for (size_t t = 0; t < kTokens; ++t) {
      store(task, group + g, first + t, acc[g][t]);
    }
  }
}

template <class Codes, ScaleType kScale, ZeroPoint kZero, size_t kRun>
void panel(const PanelTask& task) {
  uint64_t group = task.group_begin;
  if (task.tokens <= 2) {
    for (; group + 2 <= task.group_end; group += 2) {
      if (task.tokens == 1) block<Codes, kScale, kZero, kRun, 1, 2>(task, group, 0);
      if (task.tokens == 2) block<Codes, kScale, kZero, kRun, 2, 2>(task, group, 0);
    }
  }
  for (; group < task.group_end; ++group) {
    uint64_t first = 0;
    for (; first + 8 <= task.tokens; first += 8) block<Codes, kScale, kZero, kRun, 8, 1>(task, group, first);
    for (; first + 4 <= task.tokens; first += 4) block<Codes, kScale, kZero, kRun, 4, 1>(task, group, first);
    for (; first + 2 <= task.tokens; first += 2) block<Codes, kScale, kZero, kRun, 2, 1>(task, group, first);
    for (; first < task.tokens; ++first) block<Codes, kScale, kZero, kRun, 1, 1>(task, group, first);
  }
}

template <class Codes, ScaleType kScale, ZeroPoint kZero = ZeroPoint::kNone>
Panel by_run(const WeightLayout& layout) {
  return layout.run_cols() == 32 ? panel<Codes, kScale, kZero, 32> : panel<Codes, kScale, kZero, 16>;
}

template <class Codes, ZeroPoint kZero = ZeroPoint::kNone>
Panel by_scale(const WeightLayout& layout) {
  switch (layout.scale) {
    case ScaleType::kBF16: return by_run<Codes, ScaleType::kBF16, kZero>(layout);
    case ScaleType::kF16: return by_run<Codes, ScaleType::kF16, kZero>(layout);
    case ScaleType::kF32: return by_run<Codes, ScaleType::kF32, kZero>(layout);
    default: return nullptr;
  }
}

Panel panel_of(const WeightLayout& layout) {
  switch (layout.codes) {
    case CodeKind::kE2M1:
      if (layout.scale == ScaleType::kE8M0) return by_run<E2M1Codes, ScaleType::kE8M0>(layout);
      if (layout.scale == ScaleType::kE4M3) return by_run<E2M1Codes, ScaleType::kE4M3>(layout);
      return nullptr;
    case CodeKind::kInt4:
      if (layout.zero == ZeroPoint::kCode) return by_scale<Int4Codes, ZeroPoint::kCode>(layout);
      if (layout.zero == ZeroPoint::kMin) return by_scale<Int4Codes, ZeroPoint::kMin>(layout);
      return by_scale<Int4Codes>(layout);
    case CodeKind::kInt8: return by_scale<Int8Codes>(layout);
    default: return nullptr;
  }
}

std::string obstacle(const WeightLayout& layout) {
  return panel_of(layout) != nullptr ? "" : "it takes 4-bit and 8-bit integers and E2M1, with a scale in each tile";
}

std::string processor_lacks() { return has_avx512_vnni() ? "" : "AVX-512 VNNI"; }

}  // namespace

extern const Kernel kAvx512VnniInt8;
const Kernel kAvx512VnniInt8 = {"avx512-vnni", ActivationKind::kInt8, 128, processor_lacks, panel_of, obstacle};

}  // namespace nibble
