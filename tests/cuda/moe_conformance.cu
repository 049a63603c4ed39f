// The MoE layer on the GPU against the double-precision reference, over formats, shapes, routings and numbers of
// tokens; outputs are poisoned before every call, and a second call has to repeat the bits.
//
//   moe_conformance [--small]      --small: few shapes, for compute-sanitizer
//
// Exit 0 and a line per case, 1 if any differs too much, 77 with a word where there is no GPU.
#include <cmath>
#include <cstring>
#include <memory>
#include <string>

#include "nibble/base/rng.h"
#include "nibble/kernels/cuda/device_buffer.cuh"
#include "nibble/kernels/cuda/fragment_pack.h"
#include "nibble/kernels/cuda/moe_layer.h"
#include "nibble/kernels/cuda/moe_reference.h"
#include "nibble/kernels/matrix_for_test.h"
#include "nibble/numerics/codec/bf16.h"
#include "nibble/numerics/decode.h"

namespace nibble {
namespace {

struct Case {
  const char* format;
  uint64_t hidden, intermediate, experts, topk;
  MoeRouterKind router;
  GateKind gate;
  bool bias;
  enum Routing { kSpread, kHot, kHoles } routing = kSpread;  // kHot: all to few experts; kHoles: some ids are -1
  uint64_t first_expert = 0, routed = 0;                     // 0: all are here
};

// (E) matrices of a kind: as canonical arrays decode, and as the GPU has them.
struct Experts {
  std::vector<std::vector<float>> decoded, bias;
  std::unique_ptr<DeviceBuffer<std::byte>> data;
  std::unique_ptr<DeviceBuffer<float>> factors, device_bias;
  ExpertMatrix matrix;
};

Experts make_experts(const Case& test, uint64_t n, uint64_t k, FragmentRowOrder order, RngForTest* rng) {
  const Format format = parse_format(test.format);
  Experts out;
  out.matrix.layout = choose_fragment_layout(format, n, k).layout.value();
  const uint64_t bytes = out.matrix.layout.bytes();
  std::vector<std::byte> packed(bytes * test.experts);
  std::vector<float> factors, biases;
  for (uint64_t e = 0; e < test.experts; ++e) {
    EncodedMatrix encoded = random_matrix_for_test(format, n, k, rng);
    if (format.two_level) encoded.tensor_scale.value = 0.01F * static_cast<float>(1 + e % 3);
    const float factor =
        pack_fragments(out.matrix.layout, encoded.view(), order, std::span(packed).subspan(e * bytes, bytes));
    const float both = factor * multiplier_of(format, encoded.tensor_scale);
    factors.insert(factors.end(), {both, both});
    std::vector<float> values(n * k), rows(n * k), bias(n);
    decode(encoded, values);
    for (uint64_t row = 0; row < n; ++row) {
      std::copy_n(values.begin() + static_cast<int64_t>(source_row(order, n, row) * k), k,
                  rows.begin() + static_cast<int64_t>(row * k));
      bias[row] = test.bias ? rng->normal() : 0.0F;
    }
    out.decoded.push_back(std::move(rows));
    biases.insert(biases.end(), bias.begin(), bias.end());
    out.bias.push_back(std::move(bias));
  }
  out.data = std::make_unique<DeviceBuffer<std::byte>>(packed);
  out.factors = std::make_unique<DeviceBuffer<float>>(factors);
  out.device_bias = std::make_unique<DeviceBuffer<float>>(biases);
  out.matrix.data = out.data->data();
  out.matrix.factors = out.factors->data();
  out.matrix.bias = test.bias ? out.device_bias->data() : nullptr;
  return out;
}

struct Inputs {
  std::vector<uint16_t> x;
  std::vector<float> logits, correction, weights;
  std::vector<int32_t> ids;
};

Inputs make_inputs(const Case& test, const MoeShape& shape, uint64_t tokens, RngForTest* rng) {
  Inputs in;
  for (uint64_t i = 0; i < tokens * shape.hidden; ++i) in.x.push_back(bf16_encode(rng->normal()));
  for (uint64_t i = 0; i < tokens * shape.routed_experts; ++i) {
    float logit = rng->normal();
    if (test.routing == Case::kHot && i % shape.routed_experts < shape.topk) logit += 20;
    in.logits.push_back(logit);
  }
  for (uint64_t e = 0; e < shape.routed_experts; ++e) in.correction.push_back(rng->normal() * 0.2F);
  for (uint64_t t = 0; t < tokens; ++t) {
    const auto base = static_cast<uint32_t>(rng->next_u32() % shape.experts);
    for (uint64_t k = 0; k < shape.topk; ++k) {
      const bool hole = test.routing == Case::kHoles && rng->next_u32() % 3 != 0;
      in.ids.push_back(hole ? -1 : static_cast<int32_t>((base + k % 3) % shape.experts));  // some twice
      in.weights.push_back(static_cast<float>(rng->uniform()));
    }
  }
  return in;
}

MoeRouting routing_of(const MoeShape& shape, const Inputs& in, uint64_t token) {
  if (shape.router != MoeRouterKind::kGiven) {
    const std::span<const float> logits(in.logits);
    return route_reference(shape, logits.subspan(token * shape.routed_experts, shape.routed_experts), in.correction);
  }
  MoeRouting out;
  for (uint64_t k = 0; k < shape.topk; ++k) {
    out.ids.push_back(in.ids[token * shape.topk + k]);
    out.weights.push_back(static_cast<double>(in.weights[token * shape.topk + k]));
  }
  return out;
}

// Relative L2 of all outputs, and the largest difference over the largest output; infinite where one is no number.
struct Difference {
  double l2 = 0, max = 0;
};

Difference compare(const std::vector<uint16_t>& got, const std::vector<double>& want) {
  double square = 0, of = 0, worst = 0, largest = 1e-30;
  for (uint64_t i = 0; i < want.size(); ++i) {
    const double value = static_cast<double>(bf16_decode(got[i]));
    if (!std::isfinite(value)) return {INFINITY, INFINITY};
    square += (value - want[i]) * (value - want[i]);
    of += want[i] * want[i];
    worst = std::max(worst, std::fabs(value - want[i]));
    largest = std::max(largest, std::fabs(want[i]));
  }
  return {std::sqrt(square / std::max(of, 1e-30)), worst / largest};
}

int run_case(const Case& test, const std::vector<uint64_t>& token_counts) {
  RngForTest rng{7};
  MoeShape shape{.experts = test.experts,
                 .routed_experts = test.routed != 0 ? test.routed : test.experts,
                 .first_expert = test.first_expert,
                 .topk = test.topk,
                 .hidden = test.hidden,
                 .intermediate = test.intermediate,
                 .router = test.router,
                 .gate = test.gate,
                 .scaling = test.router == MoeRouterKind::kSigmoidBias ? 2.5F : 1.0F};
  const Experts gate_up =
      make_experts(test, 2 * test.intermediate, test.hidden, FragmentRowOrder::kGateUpAlternate, &rng);
  const Experts down = make_experts(test, test.hidden, test.intermediate, FragmentRowOrder::kPlain, &rng);
  const MoeLayer layer{shape, gate_up.matrix, down.matrix};
  std::vector<DecodedExpert> decoded;
  for (uint64_t e = 0; e < test.experts; ++e) {
    decoded.push_back({gate_up.decoded[e], down.decoded[e], gate_up.bias[e], down.bias[e]});
  }
  DeviceBuffer<std::byte> workspace(moe_workspace_bytes(shape));
  workspace.fill(0);
  int failed = 0;
  for (const uint64_t tokens : token_counts) {
    const Inputs in = make_inputs(test, shape, tokens, &rng);
    const DeviceBuffer<uint16_t> x(in.x);
    const DeviceBuffer<float> logits(in.logits), correction(in.correction), weights(in.weights);
    const DeviceBuffer<int32_t> ids(in.ids);
    DeviceBuffer<uint16_t> out(tokens * shape.hidden);
    MoeCall call{.tokens = tokens,
                 .x = x.data(),
                 .logits = logits.data(),
                 .correction = correction.data(),
                 .ids = ids.data(),
                 .given_weights = weights.data(),
                 .out = out.data(),
                 .workspace = workspace.data()};
    std::vector<uint16_t> first;
    bool repeats = true;
    for (int round = 0; round < 3; ++round) {
      out.fill(0xff);
      call.chained = round == 2;
      launch_moe_layer(layer, call, nullptr);
      NIBBLE_CUDA(cudaDeviceSynchronize());
      if (round == 0)
        first = out.read();
      else
        repeats &= out.read() == first;
    }
    std::vector<double> want;
    for (uint64_t t = 0; t < tokens; ++t) {
      std::vector<float> row(shape.hidden);
      for (uint64_t i = 0; i < row.size(); ++i) row[i] = bf16_decode(in.x[t * shape.hidden + i]);
      const auto y = moe_reference(shape, routing_of(shape, in, t), row, [&](int32_t e) -> const DecodedExpert& {
        return decoded[static_cast<uint64_t>(e)];
      });
      want.insert(want.end(), y.begin(), y.end());
    }
    const Difference difference = compare(first, want);
    // BF16's step is 2^-8; h and out are rounded to it once each.
    const bool good = difference.l2 < 4e-3 && difference.max < 1e-2 && repeats;
    std::printf(
        "%s %-9s H=%llu I=%llu E=%llu top%llu router %d gate %d bias %d routing %d T=%llu: l2 %.2e max %.2e%s\n",
        good ? "ok  " : "FAIL", test.format, static_cast<unsigned long long>(shape.hidden),
        static_cast<unsigned long long>(shape.intermediate), static_cast<unsigned long long>(shape.experts),
        static_cast<unsigned long long>(shape.topk), static_cast<int>(shape.router), static_cast<int>(shape.gate),
        test.bias, static_cast<int>(test.routing), static_cast<unsigned long long>(tokens), difference.l2,
        difference.max, repeats ? "" : ", other bits the second time");
    std::fflush(stdout);
    failed |= good ? 0 : 1;
  }
  return failed;
}

int run(bool small) {
  if (const std::string why = moe_device_obstacle(); !why.empty()) {
    std::printf("skipped: %s\n", why.c_str());
    return 77;
  }
  using enum MoeRouterKind;
  using enum GateKind;
  int failed = 0;
  const std::vector<Case> tiny = {
      {"mxfp4", 64, 32, 4, 2, kSoftmaxTopK, kClampedSwiglu, true},
      {"mxfp4", 96, 96, 6, 2, kSoftmaxTopK, kSilu, false},
      {"nvfp4", 96, 160, 6, 3, kSigmoidBias, kSilu, false},
      {"int4-g32", 320, 96, 5, 2, kGiven, kSilu, true, Case::kHoles},
      {"int4-g128", 384, 128, 9, 8, kSoftmaxTopK, kSilu, false},
  };
  for (const Case& test : tiny) failed |= run_case(test, {1, 3, 16});
  if (small) return failed;
  const std::vector<Case> cases = {
      {"mxfp4", 2880, 2880, 8, 4, kSoftmaxTopK, kClampedSwiglu, true},
      {"mxfp4", 2880, 576, 40, 4, kSoftmaxTopK, kClampedSwiglu, true, Case::kHot},
      {"int4-g32", 7168, 2048, 6, 1, kSoftmaxTopK, kSilu, false},
      {"int4-g32", 7168, 512, 12, 8, kSigmoidBias, kSilu, false, Case::kSpread, 36, 384},
      {"int4-g32", 7168, 320, 4, 2, kSoftmaxTopK, kSilu, false, Case::kHot},
      {"int4-g128", 2048, 768, 64, 8, kSoftmaxTopK, kSilu, false},
      {"mxfp4", 2048, 768, 64, 8, kSoftmaxTopK, kSilu, false},
      {"nvfp4", 2048, 768, 32, 8, kSoftmaxTopK, kSilu, false},
      {"nvfp4", 2880, 992, 16, 4, kGiven, kClampedSwiglu, true, Case::kHoles},
  };
  for (const Case& test : cases) failed |= run_case(test, {1, 2, 5, 8, 16});
  return failed;
}

}  // namespace
}  // namespace nibble

int main(int argc, char** argv) { return nibble::run(argc > 1 && std::strcmp(argv[1], "--small") == 0); }
