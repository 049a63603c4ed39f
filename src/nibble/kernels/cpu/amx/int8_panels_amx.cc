// Integer weights by INT8 activations in tiles of 16 tokens by 16 rows (AMX-INT8): a run's integer sums are one
// instruction, and what binds is what follows it: load, conversion, product of scales and FMA of each sum.
//
// A row group's codes are unpacked once, to signed bytes in the order in which they lie: four columns of 16 rows are a
// row of the tile that the instruction takes. Fewer than eight tokens leave most of a tile empty and bind at the
// memory: they go the way of the VNNI kernel, which every such processor has.
#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>

#include "nibble/base/cpu_features.h"
#include "nibble/kernels/activations.h"
#include "nibble/kernels/cpu/avx512/tile_avx512.h"
#include "nibble/kernels/cpu/panel_table.h"
#include "nibble/kernels/cpu/token_block.h"
#include "nibble/kernels/kernel.h"

namespace nibble {

extern const Kernel kAvx512VnniInt8;

namespace {

constexpr uint64_t kLanes = 16;  // tokens of a tile
constexpr uint64_t kFewTokens = 8;
// Runs whose sums are under way before they are read; three and six were no quicker.
constexpr uint64_t kAhead = 1;

// What the instruction _tile_loadconfig takes: palette 1, then bytes of a row and rows of each of the 8 tiles.
struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};
static_assert(sizeof(TileConfig) == 64);

// Tiles 0 and 3 hold sums, 1 and 4 activations, 2 and 5 weights: two runs are under way at a time.
TileConfig config_of(uint64_t run_cols) {
  TileConfig config;
  for (const size_t first : {size_t{0}, size_t{3}}) {
    config.rows[first] = kLanes;
    config.row_bytes[first] = 64;
    config.rows[first + 1] = kLanes;
    config.row_bytes[first + 1] = static_cast<uint16_t>(run_cols);
    config.rows[first + 2] = static_cast<uint8_t>(run_cols / 4);
    config.row_bytes[first + 2] = 64;
  }
  return config;
}

// g++ 12 does not know that tile instructions read memory: what was written there must be there.
void written(const void* at) { __asm__ volatile("" ::"r"(at) : "memory"); }

// 64 bytes of four-bit codes as two vectors of signed bytes; `zeros` holds each row's zero point in all four bytes.
template <CodeKind kCodes>
void unpack(const std::byte* at, __m512i zeros, __m512i* out) {
  const __m512i low = _mm512_set1_epi8(0x0f), codes = _mm512_loadu_si512(at);
  out[0] = _mm512_and_si512(codes, low);
  out[1] = _mm512_and_si512(_mm512_srli_epi16(codes, 4), low);
  if constexpr (kCodes == CodeKind::kE2M1) {
    // 2 q of the codes 0 to 15.
    const __m512i values =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12));
    for (size_t i = 0; i < 2; ++i) out[i] = _mm512_shuffle_epi8(values, out[i]);
  } else {
    for (size_t i = 0; i < 2; ++i) out[i] = _mm512_sub_epi8(out[i], zeros);
  }
}

// A tile's columns as rows of 64 bytes.
template <CodeKind kCodes, ScaleType kScale, ZeroPoint kZero>
void unpack_tile(const WeightLayout& layout, const std::byte* tile, std::byte* out) {
  const std::byte* of_zeros = tile + tile_scale_bytes<kScale>();
  const std::byte* codes = of_zeros + tile_zero_bytes<kZero>();
  if constexpr (kCodes == CodeKind::kInt8) {
    std::memcpy(out, codes, layout.code_bytes());
  } else {
    __m512i zeros = _mm512_set1_epi8(kZero == ZeroPoint::kNone ? 8 : 0);
    if constexpr (kZero == ZeroPoint::kCode) {
      const __m512i words = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(of_zeros)));
      zeros = _mm512_mullo_epi32(words, _mm512_set1_epi32(0x01010101));
    }
    for (uint64_t at = 0, end = layout.code_bytes(); at < end; at += 64) {
      __m512i pair[2];
      unpack<kCodes>(codes + at, zeros, pair);
      for (size_t i = 0; i < 2; ++i) _mm512_storeu_si512(out + 2 * at + 64 * i, pair[i]);
    }
  }
}

// Codes of 16 tokens, row by row; then for each run their scales, and with minima their products of scale and sum.
void interleave(const PanelTask& task, const TokenBlock& block, std::byte* out) {
  const Int8Activations& x = task.int8;
  auto* factors = reinterpret_cast<float*>(out + kLanes * x.padded_k);
  const bool minima = task.weights->layout.zero == ZeroPoint::kMin;
  const uint64_t stride = kLanes * (minima ? 2 : 1);
  for (uint64_t lane = 0; lane < kLanes; ++lane) {
    const uint64_t row = task.row_of(block.first + std::min(lane, block.count - 1));
    std::memcpy(out + lane * x.padded_k, x.codes + row * x.padded_k, x.padded_k);
    for (uint64_t run = 0; run < x.groups; ++run) {
      const uint64_t at = row * x.groups + run;
      factors[run * stride + lane] = x.scales[at];
      if (minima) factors[run * stride + kLanes + lane] = x.scales[at] * static_cast<float>(x.sums[at]);
    }
  }
}

// The sums of a run, (16 tokens, 16 rows). Tiles are named by literals: g++ 12 spells them into the instruction.
template <int kSet>
void sum_run(const std::byte* x, int x_stride, const std::byte* weights, int32_t* sums) {
  if constexpr (kSet == 0) {
    _tile_zero(0);
    _tile_loadd(1, x, x_stride);
    _tile_loadd(2, weights, 64);
    _tile_dpbssd(0, 1, 2);
    _tile_stored(0, sums, 64);
  } else {
    _tile_zero(3);
    _tile_loadd(4, x, x_stride);
    _tile_loadd(5, weights, 64);
    _tile_dpbssd(3, 4, 5);
    _tile_stored(3, sums, 64);
  }
}

template <CodeKind kCodes, ScaleType kScale, ZeroPoint kZero, size_t kRun>
class Group {
 public:
  Group(const PanelTask& task, std::byte* unpacked)
      : multiplier_(_mm512_set1_ps(scale_multiplier<kScale>(task.weights->multiplier))),
        task_(task),
        layout_(task.weights->layout),
        runs_(layout_.padded_k() / kRun),
        tile_bytes_(layout_.tile_bytes()),
        unpacked_(unpacked) {}

  // The row group that is multiplied from here on.
  void unpack_group(uint64_t group) {
    group_ = group;
    const std::byte* tile = task_.weights->row_group(group);
    for (uint64_t i = 0; i < layout_.tiles(); ++i, tile += tile_bytes_) {
      unpack_tile<kCodes, kScale, kZero>(layout_, tile, unpacked_ + i * layout_.tile_cols * kRowGroup);
    }
    written(unpacked_);
  }

  void multiply(const TokenBlock& block) {
    written(block.data);
    __m512 acc[kLanes];
    for (__m512& of_token : acc) of_token = _mm512_setzero_ps();
    alignas(64) int32_t sums[kAhead + 1][kLanes * kRowGroup];
    for (uint64_t run = 0; run < std::min(kAhead, runs_); ++run) sum(block, run, sums[run]);
    for (uint64_t run = 0; run < runs_; ++run) {
      if (run + kAhead < runs_) sum(block, run + kAhead, sums[(run + kAhead) % (kAhead + 1)]);
      add(block, run, sums[run % (kAhead + 1)], acc);
    }
    for (uint64_t t = 0; t < block.count; ++t) store_rows(task_, group_, block.first + t, acc[t]);
  }

 private:
  // Two runs that follow each other use different tiles.
  void sum(const TokenBlock& block, uint64_t run, int32_t* sums) const {
    const int stride = static_cast<int>(layout_.padded_k());  // as the instruction takes it: rows below 2^31 bytes
    const std::byte* x = block.data + run * kRun;
    const std::byte* weights = unpacked_ + run * kRun * kRowGroup;
    run % 2 == 0 ? sum_run<0>(x, stride, weights, sums) : sum_run<1>(x, stride, weights, sums);
  }

  void add(const TokenBlock& block, uint64_t run, const int32_t* sums, __m512* acc) const {
    constexpr uint64_t kStride = kLanes * (kZero == ZeroPoint::kMin ? 2 : 1);
    const std::byte* at = task_.weights->row_group(group_) + run * kRun / layout_.tile_cols * tile_bytes_;
    const IntegerTile<kScale, kZero> tile(at, multiplier_);
    const float* factors = reinterpret_cast<const float*>(block.data + kLanes * layout_.padded_k()) + run * kStride;
    for (size_t t = 0; t < kLanes; ++t) {
      const __m512 sum = _mm512_cvtepi32_ps(_mm512_load_si512(sums + t * kRowGroup));
      acc[t] = _mm512_fmadd_ps(sum, _mm512_mul_ps(tile.scale, _mm512_set1_ps(factors[t])), acc[t]);
      if constexpr (kZero == ZeroPoint::kMin) {
        acc[t] = _mm512_fmadd_ps(tile.mins, _mm512_set1_ps(factors[kLanes + t]), acc[t]);
      }
    }
  }

  __m512 multiplier_;
  const PanelTask& task_;
  const WeightLayout layout_;
  uint64_t runs_, tile_bytes_;
  std::byte* unpacked_;
  uint64_t group_ = 0;
};

struct Panels {
  static constexpr bool kFloats = false;
  template <CodeKind kCodes, ScaleType kScale, ZeroPoint kZero, size_t kRun>
  static void panel(const PanelTask& task) {
    const WeightLayout& layout = task.weights->layout;
    if (task.tokens < kFewTokens) return kAvx512VnniInt8.panel(layout)(task);
    thread_local ActivationBuffer unpacked;
    Group<kCodes, kScale, kZero, kRun> product(task, unpacked.get<std::byte>(layout.padded_k() * kRowGroup));
    const TileConfig config = config_of(kRun);
    written(&config);
    _tile_loadconfig(&config);
    const auto multiply_blocks = [&](std::span<const TokenBlock> blocks) {
      for (uint64_t group = task.group_begin; group < task.group_end; ++group) {
        product.unpack_group(group);
        for (const TokenBlock& block : blocks) product.multiply(block);
      }
    };
    const BlockShape shape{kLanes, kRun + sizeof(float) * (kZero == ZeroPoint::kMin ? 2 : 1), true};
    for_token_blocks(task, shape, interleave, multiply_blocks);
    _tile_release();
  }
};

Panel panel_of(const WeightLayout& layout) {
  return layout.run_cols() == 32 ? panel_from_table<Panels>(layout) : nullptr;
}

std::string obstacle(const WeightLayout& layout) {
  if (layout.run_cols() != 32) return "scales for 16 columns leave three quarters of a tile empty";
  return obstacle_from_table<Panels>(layout);
}

std::string processor_lacks() { return has_amx_int8() ? "" : "AMX-INT8, or leave of the system to use it"; }

}  // namespace

extern const Kernel kAmxInt8;
const Kernel kAmxInt8 = {"amx-int8", ActivationKind::kInt8, 1024, processor_lacks, panel_of, obstacle};

}  // namespace nibble
