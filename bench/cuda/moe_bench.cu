// Times the MoE layer on the GPU as a model would call it, and prints JSON rows (bench/README.md).
//
//   moe_bench [--shape NAME]... [--tokens N]... [--chained | --plain] [--no-check] [--commit ID]
//
// Cold weights: every call of a CUDA graph uses another copy of all experts and another routing, enough copies that
// three times the L2 pass before one comes back; activations stay warm, as in a model. A row is the median of 21
// replays divided by the calls of the graph, launches included. Bytes are codes and scales of the experts that were
// chosen.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>

#include "nibble/base/rng.h"
#include "nibble/kernels/cuda/device_buffer.cuh"
#include "nibble/kernels/cuda/fragment_pack.h"
#include "nibble/kernels/cuda/moe_layer.h"
#include "nibble/kernels/cuda/moe_reference.h"
#include "nibble/numerics/codec/bf16.h"
#include "nibble/numerics/decode.h"

namespace nibble {
namespace {

constexpr double kReadCeiling = 4.6e12;  // bytes a second, 16 KB bulk copies
constexpr uint64_t kSeed = 20;

struct Shape {
  const char* name;
  const char* format;
  uint64_t experts, topk, hidden, intermediate;
  GateKind gate;
};
constexpr Shape kShapes[] = {
    {"gpt-oss-120b", "mxfp4", 128, 4, 2880, 2880, GateKind::kClampedSwiglu},
    {"kimi-k2-ep8", "int4-g32", 48, 1, 7168, 2048, GateKind::kSilu},
    {"qwen3-30b-a3b", "int4-g128", 128, 8, 2048, 768, GateKind::kSilu},
    {"qwen3-30b-a3b", "mxfp4", 128, 8, 2048, 768, GateKind::kSilu},
    {"qwen3-30b-a3b", "nvfp4", 128, 8, 2048, 768, GateKind::kSilu},
};

__device__ uint32_t hashed(uint64_t x) {
  x = (x + 0x9E3779B97F4A7C15ull) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 29)) * 0x94D049BB133111EBull;
  return static_cast<uint32_t>(x >> 32);
}

// Random codes and scales of ordinary size in the resident layout, word by word.
__global__ void fill_experts(uint32_t* words, uint64_t count, FragmentLayout layout, uint64_t seed) {
  const uint64_t step = static_cast<uint64_t>(gridDim.x) * blockDim.x;
  for (uint64_t i = blockIdx.x * static_cast<uint64_t>(blockDim.x) + threadIdx.x; i < count; i += step) {
    const uint64_t tile_cols = layout.group > 64 ? layout.group : 64, size = layout.scale == ScaleType::kBF16 ? 2 : 1;
    const uint64_t tile_bytes = tile_cols * 8 + tile_cols / layout.group * 16 * size;
    const uint64_t row_tile = layout.k * 8 + layout.k / layout.group * 16 * size;
    const uint64_t in_row = i * 4 % row_tile, tile = in_row / tile_bytes;
    const uint64_t cols = layout.k - tile * tile_cols < tile_cols ? layout.k - tile * tile_cols : tile_cols;
    uint32_t word = hashed(i ^ seed << 40);
    if (in_row - tile * tile_bytes >= cols * 8) {
      if (layout.scale == ScaleType::kBF16) word = 0x3C003C00u | (word & 0x007F007Fu);
      if (layout.scale == ScaleType::kE4M3) word = 0x30303030u | (word & 0x0F0F0F0Fu);
      if (layout.scale == ScaleType::kE8M0) word = 0xF0F0F0F0u - (word & 0x03030303u);
    }
    words[i] = word;
  }
}

struct Copies {
  std::vector<std::unique_ptr<DeviceBuffer<std::byte>>> gate_up, down;
};

struct Setup {
  const Shape& shape;
  MoeShape moe;
  FragmentLayout gate_up, down;
  Copies copies;
  DeviceBuffer<float> factors, bias;
  DeviceBuffer<uint16_t> x;
  std::vector<uint16_t> host_x;
  float factor;
};

FragmentLayout layout_of(const Shape& shape, uint64_t n, uint64_t k) {
  return choose_fragment_layout(parse_format(shape.format), n, k).layout.value();
}

std::vector<uint16_t> random_x(uint64_t count) {
  std::vector<uint16_t> x(count);
  for (uint64_t i = 0; i < count; ++i) x[i] = bf16_encode(static_cast<float>(random_normal(kSeed, i)));
  return x;
}

std::vector<float> logits_of(const Setup& setup, uint64_t call, uint64_t tokens) {
  std::vector<float> logits(tokens * setup.moe.experts);
  for (uint64_t i = 0; i < logits.size(); ++i) {
    logits[i] = static_cast<float>(random_normal(kSeed + 1 + call, i));
  }
  return logits;
}

uint64_t touched_experts(const Setup& setup, const std::vector<float>& logits, uint64_t tokens) {
  std::vector<bool> used(setup.moe.experts);
  for (uint64_t t = 0; t < tokens; ++t) {
    const auto routing =
        route_reference(setup.moe, std::span(logits).subspan(t * setup.moe.experts, setup.moe.experts), {});
    for (const int32_t id : routing.ids) used[static_cast<uint64_t>(id)] = true;
  }
  return static_cast<uint64_t>(std::ranges::count(used, true));
}

MoeLayer layer_of(const Setup& setup, uint64_t copy) {
  const float* bias = setup.moe.gate == GateKind::kClampedSwiglu ? setup.bias.data() : nullptr;
  return {setup.moe,
          {setup.gate_up, setup.copies.gate_up[copy]->data(), setup.factors.data(), bias},
          {setup.down, setup.copies.down[copy]->data(), setup.factors.data(), bias}};
}

// An expert's rows as they decode, from what lies on the GPU.
std::vector<float> decoded(const FragmentLayout& layout, const DeviceBuffer<std::byte>& data, int32_t expert,
                           float factor, const Shape& shape) {
  const auto bytes = data.read(static_cast<uint64_t>(expert) * layout.bytes(), layout.bytes());
  EncodedMatrix matrix = EncodedMatrix::make(parse_format(shape.format), layout.n, layout.k);
  const bool shifted = layout.scale == ScaleType::kE8M0;
  unpack_fragments(layout, bytes, FragmentRowOrder::kPlain, shifted ? factor : 1.0F, &matrix);
  if (matrix.format.two_level) matrix.tensor_scale = {SecondLevel::kMultiply, factor};
  std::vector<float> values(layout.n * layout.k);
  decode(matrix, values);
  return values;
}

// Relative L2 of the first token's outputs against the reference.
double check_error(const Setup& setup, const std::vector<float>& logits, const std::vector<uint16_t>& out) {
  const auto routing = route_reference(setup.moe, std::span(logits).first(setup.moe.experts), {});
  std::vector<float> x(setup.moe.hidden);
  for (uint64_t i = 0; i < x.size(); ++i) x[i] = bf16_decode(setup.host_x[i]);
  DecodedExpert expert;
  const auto want = moe_reference(setup.moe, routing, x, [&](int32_t id) -> const DecodedExpert& {
    expert.gate_up = decoded(setup.gate_up, *setup.copies.gate_up[0], id, setup.factor, setup.shape);
    expert.down = decoded(setup.down, *setup.copies.down[0], id, setup.factor, setup.shape);
    if (setup.moe.gate == GateKind::kClampedSwiglu) {
      const uint64_t e = static_cast<uint64_t>(id), n = setup.gate_up.n;
      expert.gate_up_bias = setup.bias.read(e * n, n);
      expert.down_bias = setup.bias.read(e * setup.down.n, setup.down.n);
    }
    return expert;
  });
  double square = 0, of = 0;
  for (uint64_t i = 0; i < want.size(); ++i) {
    const double got = static_cast<double>(bf16_decode(out[i]));
    square += (got - want[i]) * (got - want[i]);
    of += want[i] * want[i];
  }
  return std::isfinite(square) ? std::sqrt(square / of) : INFINITY;
}

double median_us(cudaGraphExec_t graph, cudaStream_t stream, uint64_t calls) {
  cudaEvent_t begin = nullptr, end = nullptr;
  NIBBLE_CUDA(cudaEventCreate(&begin));
  NIBBLE_CUDA(cudaEventCreate(&end));
  std::vector<double> times;
  for (int round = 0; round < 24; ++round) {
    NIBBLE_CUDA(cudaEventRecord(begin, stream));
    NIBBLE_CUDA(cudaGraphLaunch(graph, stream));
    NIBBLE_CUDA(cudaEventRecord(end, stream));
    NIBBLE_CUDA(cudaStreamSynchronize(stream));
    float ms = 0;
    NIBBLE_CUDA(cudaEventElapsedTime(&ms, begin, end));
    if (round >= 3) times.push_back(static_cast<double>(ms) * 1e3 / static_cast<double>(calls));
  }
  std::ranges::sort(times);
  return times[times.size() / 2];
}

struct Row {
  double us, bytes, error;
};

Row measure(const Setup& setup, uint64_t tokens, bool chained, bool check) {
  const uint64_t calls = 24;
  DeviceBuffer<std::byte> workspace(moe_workspace_bytes(setup.moe));
  workspace.fill(0);
  DeviceBuffer<uint16_t> out(tokens * setup.moe.hidden);
  cudaStream_t stream = nullptr;
  NIBBLE_CUDA(cudaStreamCreate(&stream));
  std::vector<std::unique_ptr<DeviceBuffer<float>>> logits;
  double touched = 0;
  for (uint64_t i = 0; i < calls; ++i) {
    const auto host = logits_of(setup, i, tokens);
    touched += static_cast<double>(touched_experts(setup, host, tokens));
    logits.push_back(std::make_unique<DeviceBuffer<float>>(host));
  }
  const auto enqueue = [&](uint64_t i) {
    MoeCall call{.tokens = tokens,
                 .x = setup.x.data(),
                 .logits = logits[i]->data(),
                 .out = out.data(),
                 .workspace = workspace.data(),
                 .chained = chained && i > 0};
    launch_moe_layer(layer_of(setup, i % setup.copies.down.size()), call, stream);
  };
  Row row = {};
  row.bytes = touched / static_cast<double>(calls) * static_cast<double>(setup.gate_up.bytes() + setup.down.bytes());
  out.fill(0xff);
  NIBBLE_CUDA(cudaDeviceSynchronize());
  enqueue(0);
  NIBBLE_CUDA(cudaStreamSynchronize(stream));
  row.error = check ? check_error(setup, logits_of(setup, 0, tokens), out.read()) : -1;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  NIBBLE_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  for (uint64_t i = 0; i < calls; ++i) enqueue(i);
  NIBBLE_CUDA(cudaStreamEndCapture(stream, &graph));
  NIBBLE_CUDA(cudaGraphInstantiate(&exec, graph, 0));
  row.us = median_us(exec, stream, calls);
  NIBBLE_CUDA(cudaGraphExecDestroy(exec));
  NIBBLE_CUDA(cudaGraphDestroy(graph));
  NIBBLE_CUDA(cudaStreamDestroy(stream));
  return row;
}

Setup make_setup(const Shape& shape, uint64_t most_tokens) {
  const FragmentLayout gate_up = layout_of(shape, 2 * shape.intermediate, shape.hidden);
  const FragmentLayout down = layout_of(shape, shape.hidden, shape.intermediate);
  const float factor = gate_up.scale == ScaleType::kE8M0 ? 0x1p-7F : gate_up.scale == ScaleType::kE4M3 ? 0x1p-6F : 1.0F;
  const auto x = random_x(most_tokens * shape.hidden);
  std::vector<float> bias(shape.experts * std::max(gate_up.n, down.n));
  for (uint64_t i = 0; i < bias.size(); ++i) bias[i] = static_cast<float>(random_normal(kSeed + 99, i)) * 0.1F;
  Setup setup{shape,
              {.experts = shape.experts,
               .routed_experts = shape.experts,
               .topk = shape.topk,
               .hidden = shape.hidden,
               .intermediate = shape.intermediate,
               .router = MoeRouterKind::kSoftmaxTopK,
               .gate = shape.gate},
              gate_up,
              down,
              {},
              DeviceBuffer<float>(std::vector<float>(shape.experts * 2, factor)),
              DeviceBuffer<float>(bias),
              DeviceBuffer<uint16_t>(x),
              x,
              factor};
  // Three times 60 MB of the smaller matrix pass before a copy comes back, at one token.
  const uint64_t copies = std::clamp<uint64_t>(190'000'000 / (shape.topk * down.bytes()) + 1, 3, 24);
  for (uint64_t c = 0; c < copies; ++c) {
    for (const bool of_down : {false, true}) {
      const FragmentLayout& layout = of_down ? down : gate_up;
      auto data = std::make_unique<DeviceBuffer<std::byte>>(layout.bytes() * shape.experts);
      fill_experts<<<2048, 256>>>(reinterpret_cast<uint32_t*>(data->data()), data->size() / 4, layout, 2 * c + of_down);
      NIBBLE_CUDA(cudaGetLastError());
      (of_down ? setup.copies.down : setup.copies.gate_up).push_back(std::move(data));
    }
  }
  NIBBLE_CUDA(cudaDeviceSynchronize());
  return setup;
}

void print_row(const Setup& setup, uint64_t tokens, bool chained, const Row& row, bool first) {
  const double flops = 6.0 * static_cast<double>(tokens * setup.moe.topk * setup.moe.hidden * setup.moe.intermediate);
  std::printf(
      "%s\n {\"op\":\"moe_layer\",\"shape\":\"%s\",\"format\":\"%s\",\"scheme\":\"w4a16\",\"tokens\":%llu,"
      "\"us\":%.2f,\"bytes\":%.0f,\"flops\":%.0f,\"gb_per_s\":%.1f,\"tflops\":%.2f,\"percent_of_floor\":%.1f,"
      "\"ceiling\":\"4.6 TB/s read\",\"check_error\":%.2e,\"kernel\":\"few_tokens%s\"}",
      first ? "" : ",", setup.shape.name, setup.shape.format, static_cast<unsigned long long>(tokens), row.us,
      row.bytes, flops, row.bytes / row.us / 1e3, flops / row.us / 1e6,
      100 * row.bytes / kReadCeiling / (row.us * 1e-6), row.error, chained ? ", chained" : "");
  std::fflush(stdout);
}

void print_machine(const std::string& commit) {
  cudaDeviceProp properties = {};
  NIBBLE_CUDA(cudaGetDeviceProperties(&properties, 0));
  int khz = 0;
  NIBBLE_CUDA(cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, 0));
  std::printf(
      "{\"machine\":{\"gpu\":\"%s\",\"multiprocessors\":%d,\"l2_bytes\":%d,\"sm_mhz\":%d,\"commit\":\"%s\","
      "\"seed\":%llu},\"rows\":[",
      properties.name, properties.multiProcessorCount, properties.l2CacheSize, khz / 1000, commit.c_str(),
      static_cast<unsigned long long>(kSeed));
}

int run(int argc, char** argv) {
  if (const std::string why = moe_device_obstacle(); !why.empty()) {
    std::printf("skipped: %s\n", why.c_str());
    return 77;
  }
  std::vector<std::string> shapes;
  std::vector<uint64_t> tokens;
  std::string commit = "unknown";
  bool check = true, plain = true, chained = true;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--shape" && i + 1 < argc)
      shapes.emplace_back(argv[++i]);
    else if (option == "--tokens" && i + 1 < argc)
      tokens.push_back(std::strtoull(argv[++i], nullptr, 10));
    else if (option == "--commit" && i + 1 < argc)
      commit = argv[++i];
    else if (option == "--no-check")
      check = false;
    else if (option == "--plain")
      chained = false;
    else if (option == "--chained")
      plain = false;
    else
      return 2;
  }
  if (tokens.empty()) tokens = {1, 2, 4, 8, 16};
  print_machine(commit);
  bool first = true;
  for (const Shape& shape : kShapes) {
    const std::string name = std::string(shape.name) + "/" + shape.format;
    if (!shapes.empty() && std::ranges::find(shapes, name) == shapes.end() &&
        std::ranges::find(shapes, shape.name) == shapes.end())
      continue;
    const Setup setup = make_setup(shape, *std::ranges::max_element(tokens));
    for (const uint64_t count : tokens) {
      double error = -1;
      for (const bool chain : {false, true}) {
        if (chain ? !chained : !plain) continue;
        // The same kernel on the same inputs: one check for both.
        Row row = measure(setup, count, chain, check && !(chain && plain));
        if (chain && plain) row.error = error;
        error = row.error;
        print_row(setup, count, chain, row, first);
        first = false;
      }
    }
  }
  std::printf("\n]}\n");
  return 0;
}

}  // namespace
}  // namespace nibble

int main(int argc, char** argv) { return nibble::run(argc, argv); }
