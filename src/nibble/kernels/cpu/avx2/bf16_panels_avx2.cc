// BF16 weights by BF16 activations, 8 rows a vector, for processors without dot products of BF16 pairs: two FMAs a
// pair, with subnormal numbers taken for 0 and flushed to 0 as those dot products do (panel.h), which MXCSR can ask
// for.
#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>

#include "nibble/base/cpu_features.h"
#include "nibble/kernels/cpu/avx2/tile_scales_avx2.h"
#include "nibble/kernels/cpu/token_block.h"
#include "nibble/kernels/kernel.h"

namespace nibble {
namespace {

// While it lives, this thread's arithmetic takes subnormal numbers for 0 and gives 0 for them.
class FlushingArithmetic {
 public:
  FlushingArithmetic() : before_(_mm_getcsr()) { _mm_setcsr(before_ | kFlushToZero | kZeroForSubnormal); }
  ~FlushingArithmetic() { _mm_setcsr(before_); }
  FlushingArithmetic(const FlushingArithmetic&) = delete;
  FlushingArithmetic& operator=(const FlushingArithmetic&) = delete;

 private:
  static constexpr unsigned kFlushToZero = 0x8000, kZeroForSubnormal = 0x0040;
  unsigned before_;
};

__m256 low_half(__m256i words) { return _mm256_castsi256_ps(_mm256_slli_epi32(words, 16)); }
__m256 high_half(__m256i words) {
  return _mm256_castsi256_ps(_mm256_and_si256(words, _mm256_set1_epi32(static_cast<int>(0xffff0000U))));
}

// The sums of each run of half a row group for the tokens of a block: (runs, tokens, 8). They are added up by the
// caller, whose arithmetic flushes nothing.
template <size_t kTokens>
void sum_runs(const std::byte* codes, size_t half, const std::byte* x, uint64_t runs, float* sums) {
  const FlushingArithmetic flushing;
  for (uint64_t run = 0; run < runs; ++run) {
    __m256 of_run[kTokens];
    std::fill_n(of_run, kTokens, _mm256_setzero_ps());
    for (size_t pair = 0; pair < 16; ++pair, codes += 64, x += 4 * kTokens) {
      const __m256i weights = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes + 32 * half));
      const __m256 even = low_half(weights), odd = high_half(weights);
      for (size_t t = 0; t < kTokens; ++t) {
        int32_t word = 0;
        std::memcpy(&word, x + 4 * t, sizeof(word));
        const __m256i values = _mm256_set1_epi32(word);
        of_run[t] = _mm256_fmadd_ps(odd, high_half(values), of_run[t]);
        of_run[t] = _mm256_fmadd_ps(even, low_half(values), of_run[t]);
      }
    }
    for (size_t t = 0; t < kTokens; ++t) _mm256_storeu_ps(sums + (run * kTokens + t) * 8, of_run[t]);
  }
}

template <size_t kTokens>
void multiply(const PanelTask& task, const TokenBlock& block, uint64_t group) {
  const WeightLayout& layout = task.weights->layout;
  const uint64_t runs = layout.padded_k() / layout.run_cols();
  const uint64_t present = std::min(kRowGroup, layout.n - group * kRowGroup);
  thread_local ActivationBuffer buffer;
  auto* sums = buffer.get<float>(runs * kTokens * 8);
  for (size_t half = 0; half < 2; ++half) {
    sum_runs<kTokens>(task.weights->row_group(group), half, block.data, runs, sums);
    for (size_t t = 0; t < block.count; ++t) {
      __m256 acc = _mm256_setzero_ps();
      for (uint64_t run = 0; run < runs; ++run) {
        acc = _mm256_add_ps(_mm256_loadu_ps(sums + (run * kTokens + t) * 8), acc);
      }
      store_half(task.out + (block.first + t) * task.out_stride + group * kRowGroup, present, half, acc);
    }
  }
}

void panel(const PanelTask& task) {
  const auto multiply_blocks = [&](std::span<const TokenBlock> blocks) {
    for (uint64_t group = task.group_begin; group < task.group_end; ++group) {
      for (const TokenBlock& block : blocks) {
        switch (block.lanes) {
          case 1: multiply<1>(task, block, group); break;
          case 2: multiply<2>(task, block, group); break;
          default: multiply<4>(task, block, group); break;
        }
      }
    }
  };
  for_token_blocks(task, {4, bf16_run_bytes(task.weights->layout)}, interleave_bf16, multiply_blocks);
}

Panel panel_of(const WeightLayout& layout) { return layout.codes == CodeKind::kBF16 ? panel : nullptr; }

std::string obstacle(const WeightLayout& layout) { return panel_of(layout) != nullptr ? "" : "it takes BF16 weights"; }

std::string processor_lacks() { return best_isa() >= Isa::kAvx2 ? "" : "AVX2, FMA or F16C"; }

}  // namespace

extern const Kernel kAvx2BF16;
const Kernel kAvx2BF16 = {"avx2", ActivationKind::kBF16, 8, processor_lacks, panel_of, obstacle};

}  // namespace nibble
