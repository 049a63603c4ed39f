// From moe_layer.h's layer and call to a launch of the kernel that takes them.
#include <cuda_runtime.h>

#include <string>

#include "nibble/base/error.h"
#include "nibble/kernels/cuda/few_tokens_launcher.cuh"
#include "nibble/kernels/cuda/moe_workspace.h"

namespace nibble {
namespace {

struct DeviceLimits {
  int multiprocessors = 0, shared_bytes = 0, major = 0, minor = 0;
};

cudaError_t read_limits(DeviceLimits* out) {
  int device = 0;
  cudaError_t error = cudaGetDevice(&device);
  const auto read = [&](int* to, cudaDeviceAttr which) {
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(to, which, device);
  };
  read(&out->multiprocessors, cudaDevAttrMultiProcessorCount);
  read(&out->shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin);
  read(&out->major, cudaDevAttrComputeCapabilityMajor);
  read(&out->minor, cudaDevAttrComputeCapabilityMinor);
  return error;
}

void check(cudaError_t error, const char* doing) {
  if (error == cudaSuccess) return;
  throw Error(std::string("the GPU refused: ") + cudaGetErrorString(error)).context(doing);
}

FewTokensMatrix flat(const ExpertMatrix& matrix) {
  FewTokensMatrix out;
  out.data = reinterpret_cast<const uint8_t*>(matrix.data);
  out.factors = matrix.factors;
  out.bias = matrix.bias;
  out.expert_bytes = matrix.layout.bytes();
  out.row_tile_bytes = static_cast<uint32_t>(matrix.layout.row_tile_bytes());
  out.row_tiles = Divisor(static_cast<uint32_t>(matrix.layout.row_tiles()));
  out.tiles = Divisor(static_cast<uint32_t>(matrix.layout.tiles()));
  out.n = static_cast<uint32_t>(matrix.layout.n);
  out.k = static_cast<uint32_t>(matrix.layout.k);
  return out;
}

FewTokensArgs flat(const MoeLayer& layer, const MoeCall& call) {
  const MoeShape& shape = layer.shape;
  const MoeWorkspace workspace = moe_workspace(shape);
  FewTokensArgs out;
  out.matrix[0] = flat(layer.gate_up);
  out.matrix[1] = flat(layer.down);
  out.x = call.x;
  out.logits = call.logits;
  out.correction = call.correction;
  out.ids = call.ids;
  out.given_weights = call.given_weights;
  out.out = call.out;
  out.calls = reinterpret_cast<uint64_t*>(call.workspace);
  out.hidden = reinterpret_cast<uint2*>(call.workspace + workspace.hidden);
  out.sums = reinterpret_cast<uint2*>(call.workspace + workspace.sums);
  out.tokens = static_cast<uint32_t>(call.tokens);
  out.topk = static_cast<uint32_t>(shape.topk);
  out.experts = static_cast<uint32_t>(shape.experts);
  out.routed = static_cast<uint32_t>(shape.routed_experts);
  out.first_expert = static_cast<uint32_t>(shape.first_expert);
  out.hidden_size = static_cast<uint32_t>(shape.hidden);
  out.intermediate = static_cast<uint32_t>(shape.intermediate);
  out.chunks[0] = Divisor(out.hidden_size / 8);
  out.chunks[1] = Divisor(out.intermediate / 8);
  out.router = shape.router;
  out.gate = shape.gate;
  out.scaling = shape.scaling;
  return out;
}

}  // namespace

std::string moe_device_obstacle() {
  DeviceLimits limits;
  const cudaError_t error = read_limits(&limits);
  if (error != cudaSuccess) return std::string("no device: ") + cudaGetErrorString(error);
  if (limits.major < 8) {
    return "compute capability " + std::to_string(limits.major) + "." + std::to_string(limits.minor) + " is below 8.0";
  }
  constexpr int kSharedBytes = 163 * 1024;
  if (limits.shared_bytes < kSharedBytes) {
    return "a block may have " + std::to_string(limits.shared_bytes) + " bytes of shared memory, less than " +
           std::to_string(kSharedBytes);
  }
  return "";
}

void launch_moe_layer(const MoeLayer& layer, const MoeCall& call, void* stream) {
  if (const std::string wrong = check_moe_layer(layer, call); !wrong.empty()) {
    throw Error("the MoE layer is refused: " + wrong).way_out("see nibble/kernels/cuda/moe_layer.h for what is taken");
  }
  const FragmentLayout& layout = layer.gate_up.layout;
  const int blocks = call.tokens <= 8 ? 1 : 2;
  const FewTokensLauncher launcher = layout.codes == CodeKind::kE2M1
                                         ? few_tokens_e2m1(layout.scale, layout.group, blocks)
                                         : few_tokens_int4(layout.scale, layout.group, blocks);
  if (launcher == nullptr) {
    throw Error("no kernel on the GPU takes this format").value("group", layout.group).way_out("run it on the CPU");
  }
  DeviceLimits limits;
  check(read_limits(&limits), "asking the GPU for its limits");
  FewTokensLaunch launch;
  launch.multiprocessors = static_cast<uint32_t>(limits.multiprocessors);
  launch.shared_bytes = static_cast<uint32_t>(limits.shared_bytes);
  launch.chained = call.chained && limits.major >= 9;
  launch.stream = static_cast<cudaStream_t>(stream);
  check(launcher(flat(layer, call), launch), "launching the MoE layer");
}

}  // namespace nibble
