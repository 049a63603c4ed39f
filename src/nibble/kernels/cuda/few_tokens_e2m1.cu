// E2M1 weights with E8M0 scales of 32 columns or E4M3 ones of 16.
#include "nibble/kernels/cuda/few_tokens_launch.cuh"

namespace nibble {

FewTokensLauncher few_tokens_e2m1(ScaleType scale, uint64_t group, int blocks) {
  using Mx = FragmentFormat<CodeKind::kE2M1, ScaleType::kE8M0, 32>;
  using Nv = FragmentFormat<CodeKind::kE2M1, ScaleType::kE4M3, 16>;
  if (scale == ScaleType::kE8M0 && group == 32)
    return blocks == 1 ? launch_few_tokens<Mx, 1> : launch_few_tokens<Mx, 2>;
  if (scale == ScaleType::kE4M3 && group == 16)
    return blocks == 1 ? launch_few_tokens<Nv, 1> : launch_few_tokens<Nv, 2>;
  return nullptr;
}

}  // namespace nibble
