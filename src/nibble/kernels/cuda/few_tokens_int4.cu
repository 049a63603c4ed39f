// INT4 weights with BF16 scales of 32 or 128 columns.
#include "nibble/kernels/cuda/few_tokens_launch.cuh"

namespace nibble {

FewTokensLauncher few_tokens_int4(ScaleType scale, uint64_t group, int blocks) {
  using G32 = FragmentFormat<CodeKind::kInt4, ScaleType::kBF16, 32>;
  using G128 = FragmentFormat<CodeKind::kInt4, ScaleType::kBF16, 128>;
  if (scale != ScaleType::kBF16) return nullptr;
  if (group == 32) return blocks == 1 ? launch_few_tokens<G32, 1> : launch_few_tokens<G32, 2>;
  if (group == 128) return blocks == 1 ? launch_few_tokens<G128, 1> : launch_few_tokens<G128, 2>;
  return nullptr;
}

}  // namespace nibble
