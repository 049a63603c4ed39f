// Instances of the kernel for few tokens behind one function type, so that each format's file compiles alone.
#pragma once

#include <cuda_runtime.h>

#include "nibble/kernels/cuda/few_tokens_args.cuh"

namespace nibble {

struct FewTokensLaunch {
  uint32_t multiprocessors = 0;
  uint32_t shared_bytes = 0;  // that a block may have, at most
  bool chained = false;
  cudaStream_t stream = nullptr;
};

using FewTokensLauncher = cudaError_t (*)(FewTokensArgs args, const FewTokensLaunch& launch);

// Null where no instance takes the format. `blocks` is 1 for up to 8 tokens of an expert, else 2.
FewTokensLauncher few_tokens_e2m1(ScaleType scale, uint64_t group, int blocks);
FewTokensLauncher few_tokens_int4(ScaleType scale, uint64_t group, int blocks);

}  // namespace nibble
