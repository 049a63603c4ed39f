// BF16 weights by BF16 activations, 16 rows a vector, with dot products of pairs (AVX-512 BF16).
//
// A lane is a row and holds two columns of it, as the file does: nothing is unpacked. Of a token two row groups side by
// side, of up to twelve tokens as many chains. On a Xeon of 2023 these dot products start at half the rate of float32's
// FMA, so that they reach what the latter do; they are here for the arithmetic, and for processors that start two.
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string>

#include "nibble/base/cpu_features.h"
#include "nibble/kernels/cpu/avx512/tile_avx512.h"
#include "nibble/kernels/cpu/token_block.h"
#include "nibble/kernels/kernel.h"

namespace nibble {
namespace {

constexpr size_t kPairs = 16;  // of a run of 32 columns
constexpr uint64_t kTileBytes = 64 * kPairs;

__m512bh broadcast_pair(const std::byte* words, size_t index) {
  int32_t word = 0;
  std::memcpy(&word, words + 4 * index, sizeof(word));
  return reinterpret_cast<__m512bh>(_mm512_set1_epi32(word));
}

template <size_t kTokens, size_t kGroups>
[[gnu::noinline]] void multiply(const PanelTask& task, const TokenBlock& block,
                                const std::array<uint64_t, kGroups>& groups) {
  const uint64_t tiles = task.weights->layout.tiles();
  __m512 acc[kGroups][kTokens];
  for (auto& of_group : acc) {
    for (auto& of_token : of_group) of_token = _mm512_setzero_ps();
  }
  const std::byte* tiles_at[kGroups];
  for (size_t g = 0; g < kGroups; ++g) tiles_at[g] = task.weights->row_group(groups[g]);
  const std::byte* x = block.data;
  for (uint64_t i = 0; i < tiles; ++i, x += 4 * kPairs * kTokens) {
    for (size_t g = 0; g < kGroups; ++g) {
      prefetch_behind(tiles_at[g], kTileBytes);
      __m512 sums[kTokens];
      for (__m512& sum : sums) sum = _mm512_setzero_ps();
      for (size_t p = 0; p < kPairs; ++p) {
        const auto weights = reinterpret_cast<__m512bh>(_mm512_loadu_si512(tiles_at[g] + 64 * p));
        for (size_t t = 0; t < kTokens; ++t) {
          sums[t] = _mm512_dpbf16_ps(sums[t], weights, broadcast_pair(x, p * kTokens + t));
        }
      }
      for (size_t t = 0; t < kTokens; ++t) acc[g][t] = _mm512_add_ps(sums[t], acc[g][t]);
      tiles_at[g] += kTileBytes;
    }
  }
  for (size_t g = 0; g < kGroups; ++g) {
    for (size_t t = 0; t < std::min<uint64_t>(kTokens, block.count); ++t) {
      store_rows(task, groups[g], block.first + t, acc[g][t]);
    }
  }
}

void multiply_group(const PanelTask& task, const TokenBlock& block, uint64_t group) {
  switch (block.lanes) {
    case 1: return multiply<1, 1>(task, block, {group});
    case 2: return multiply<2, 1>(task, block, {group});
    case 4: return multiply<4, 1>(task, block, {group});
    case 8: return multiply<8, 1>(task, block, {group});
    default: return multiply<12, 1>(task, block, {group});
  }
}

void panel(const PanelTask& task) {
  const auto multiply_blocks = [&](std::span<const TokenBlock> blocks) {
    const auto one = [&](uint64_t group) { multiply_group(task, blocks[0], group); };
    if (task.tokens == 1) {
      return for_pairs_of_groups(
          task, [&](uint64_t group, uint64_t other) { multiply<1, 2>(task, blocks[0], {group, other}); }, one);
    }
    for (uint64_t group = task.group_begin; group < task.group_end; ++group) {
      for (const TokenBlock& block : blocks) multiply_group(task, block, group);
    }
  };
  for_token_blocks(task, {12, bf16_run_bytes(task.weights->layout)}, interleave_bf16, multiply_blocks);
}

Panel panel_of(const WeightLayout& layout) { return layout.codes == CodeKind::kBF16 ? panel : nullptr; }

std::string obstacle(const WeightLayout& layout) { return panel_of(layout) != nullptr ? "" : "it takes BF16 weights"; }

std::string processor_lacks() { return has_avx512_bf16() ? "" : "AVX-512 BF16"; }

}  // namespace

extern const Kernel kAvx512BF16;
const Kernel kAvx512BF16 = {"avx512-bf16", ActivationKind::kBF16, 32, processor_lacks, panel_of, obstacle};

}  // namespace nibble
