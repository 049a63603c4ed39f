// An instance of the kernel for few tokens as a FewTokensLauncher.
#pragma once

#include <cuda_runtime.h>

#include "nibble/kernels/cuda/few_tokens.cuh"
#include "nibble/kernels/cuda/few_tokens_launcher.cuh"

namespace nibble {

// Of those tried on an H200 (8 to 16 warps, 2 to 5 stages of 256 to 576 columns): two stages a warp are enough, since
// 16 warps have more than 100 KB on their way, and a stage costs as many instructions as two of its tiles. What is left
// of shared memory holds activations.
template <class Format, int kBlocks>
using ChosenTuning = FewTokensTuning<16, 2, kBlocks == 1 && Format::kScaleSize == 1 ? 512 : 448>;

template <class Format, int kBlocks>
cudaError_t launch_few_tokens(FewTokensArgs args, const FewTokensLaunch& launch) {
  using Tuning = ChosenTuning<Format, kBlocks>;
  using Memory = FewTokensMemory<Format, Tuning, kBlocks>;
  const auto kernel = few_tokens_kernel<Format, Tuning, kBlocks>;
  constexpr uint32_t kFixed = sizeof(typename FewTokensKernel<Format, Tuning, kBlocks>::Fixed) + 128;
  if (launch.shared_bytes < kFixed + Memory::kStaging) return cudaErrorInvalidConfiguration;
  const uint32_t dynamic = launch.shared_bytes - kFixed;
  args.staging_bytes = dynamic - Memory::kStaging;
  args.blocks = Divisor(launch.multiprocessors);
  for (FewTokensMatrix& matrix : args.matrix) {
    const uint32_t stages = (matrix.tiles.divisor + Memory::kStageTiles - 1) / Memory::kStageTiles;
    matrix.stage_tiles = (matrix.tiles.divisor + stages - 1) / stages;
  }
  // Once a process would do, but a process may have several devices and this costs less than to remember them.
  cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(dynamic));
  if (error != cudaSuccess) return error;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(launch.multiprocessors);
  config.blockDim = dim3(Tuning::kWarps * 32);
  config.dynamicSmemBytes = dynamic;
  config.stream = launch.stream;
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  config.attrs = &attribute;
  config.numAttrs = launch.chained ? 1 : 0;
  return cudaLaunchKernelEx(&config, kernel, args);
}

}  // namespace nibble
