// Speed of the quantizer and the decoder on one thread, in bytes of BF16 input (or of float32 output) a second.
//
//   build/release/bench/numerics_bench --benchmark_filter=encode
//   NIBBLE_ISA=scalar … for the reference
//
// The matrix (64 x 4096 BF16, 512 KiB) stays in the second-level cache; error sums are included. Every case first
// checks its bytes against the scalar reference: a fast wrong answer is not a result.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <vector>

#include "nibble/base/check.h"
#include "nibble/base/cpu_features.h"
#include "nibble/base/rng.h"
#include "nibble/numerics/codec/bf16.h"
#include "nibble/numerics/decode.h"
#include "nibble/numerics/quantizer.h"
#include "nibble/numerics/simd/kernels.h"

namespace nibble {
namespace {

constexpr uint64_t kRows = 64, kCols = 4096;

std::vector<uint16_t> random_weights() {
  std::vector<uint16_t> weights(kRows * kCols);
  for (uint64_t i = 0; i < weights.size(); ++i)
    weights[i] = bf16_encode(static_cast<float>(0.05 * random_normal(1, i)));
  return weights;
}

struct Encoding {
  Quantizer quantizer;
  EncodedMatrix matrix;
  std::vector<ErrorSums> errors;

  explicit Encoding(const QuantizeOptions& options)
      : quantizer(options), matrix(EncodedMatrix::make(options.format, kRows, kCols)), errors(kRows) {}

  void run(const DenseView& x) {
    if (quantizer.needs_amax()) matrix.tensor_scale = quantizer.tensor_scale(abs_max(x).amax, x.element);
    NIBBLE_CHECK(!quantizer.encode(x, matrix.tensor_scale, matrix.mutable_view(), errors.data()));
  }
};

void check_against_scalar(const QuantizeOptions& options, const DenseView& x, const Encoding& measured) {
  const char* wanted = std::getenv("NIBBLE_ISA");
  const std::string before = wanted == nullptr ? "" : wanted;
  ::setenv("NIBBLE_ISA", "scalar", 1);
  Encoding reference(options);
  reference.run(x);
  wanted == nullptr ? ::unsetenv("NIBBLE_ISA") : ::setenv("NIBBLE_ISA", before.c_str(), 1);
  NIBBLE_CHECK(reference.matrix.codes == measured.matrix.codes && reference.matrix.scales == measured.matrix.scales);
}

void encode(benchmark::State& state, const char* format_name, const char* rule, BitExact who) {
  const std::vector<uint16_t> weights = random_weights();
  const DenseView x{reinterpret_cast<const std::byte*>(weights.data()), Element::kBF16, kRows, kCols, 2 * kCols};
  const Format format = parse_format(format_name);
  const QuantizeOptions options{.format = format, .rule = parse_rule(rule, format), .bit_exact = who};
  Encoding encoding(options);
  for (auto _ : state) {
    encoding.run(x);
    benchmark::ClobberMemory();
  }
  check_against_scalar(options, x, encoding);
  state.SetBytesProcessed(static_cast<int64_t>(static_cast<uint64_t>(state.iterations()) * kRows * kCols * 2));
  state.SetLabel(std::string(isa_name(best_isa())));
}

void decode_floats(benchmark::State& state, const char* format_name) {
  const std::vector<uint16_t> weights = random_weights();
  const DenseView x{reinterpret_cast<const std::byte*>(weights.data()), Element::kBF16, kRows, kCols, 2 * kCols};
  const Format format = parse_format(format_name);
  Encoding encoding({.format = format, .rule = default_rule(format)});
  encoding.run(x);
  std::vector<float> values(kRows * kCols);
  for (auto _ : state) {
    decode(encoding.matrix, values);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<int64_t>(static_cast<uint64_t>(state.iterations()) * kRows * kCols * 4));
}

void abs_max_bf16(benchmark::State& state) {
  const std::vector<uint16_t> weights = random_weights();
  const DenseView x{reinterpret_cast<const std::byte*>(weights.data()), Element::kBF16, kRows, kCols, 2 * kCols};
  for (auto _ : state) benchmark::DoNotOptimize(abs_max(x));
  state.SetBytesProcessed(static_cast<int64_t>(static_cast<uint64_t>(state.iterations()) * kRows * kCols * 2));
}
BENCHMARK(abs_max_bf16);

#define NIBBLE_BENCH(name, format, rule, who) BENCHMARK_CAPTURE(encode, name, format, rule, BitExact::who)

NIBBLE_BENCH(int4_g32_amax7_5, "int4-g32", "int4.amax7_5", kNone);
NIBBLE_BENCH(int4_g128_amax7_5, "int4-g128", "int4.amax7_5", kNone);
NIBBLE_BENCH(int4_g32_asym, "int4-g32-asym", "int4.asym", kNone);
NIBBLE_BENCH(int4_g128_asym, "int4-g128-asym", "int4.asym", kNone);
NIBBLE_BENCH(int4_g32_extreme8, "int4-g32", "int4.extreme8", kNone);
NIBBLE_BENCH(mxfp4_even, "mxfp4", "mx.even", kNone);
NIBBLE_BENCH(mxfp4_rceil, "mxfp4", "mx.rceil", kNone);
NIBBLE_BENCH(mxfp4_mse, "mxfp4", "mse.mx.even", kNone);
NIBBLE_BENCH(nvfp4_two_level, "nvfp4", "nv.two_level", kNone);
NIBBLE_BENCH(nvfp4_ct, "nvfp4", "nv.ct", kNone);
NIBBLE_BENCH(nvfp4_four_six, "nvfp4", "nv.four_six", kNone);
NIBBLE_BENCH(mxfp8_even, "mxfp8", "mx.even", kNone);
NIBBLE_BENCH(fp8_block_amax, "fp8-block", "fp8.amax", kNone);
NIBBLE_BENCH(fp8_block_ue8m0, "fp8-block", "fp8.ue8m0", kNone);
NIBBLE_BENCH(fp8_channel_amax, "fp8-channel", "fp8.amax", kNone);
NIBBLE_BENCH(fp8_tensor_amax, "fp8-tensor", "fp8.amax", kNone);
NIBBLE_BENCH(int4_g32_as_compressed_tensors, "int4-g32", "int4.amax7_5", kCompressedTensors);
NIBBLE_BENCH(nvfp4_as_compressed_tensors, "nvfp4", "nv.ct", kCompressedTensors);
NIBBLE_BENCH(nvfp4_as_modelopt, "nvfp4", "nv.two_level", kModelOpt);
NIBBLE_BENCH(mxfp4_as_compressed_tensors, "mxfp4", "mx.even", kCompressedTensors);

BENCHMARK_CAPTURE(decode_floats, int4_g32, "int4-g32");
BENCHMARK_CAPTURE(decode_floats, int4_g32_asym, "int4-g32-asym");
BENCHMARK_CAPTURE(decode_floats, mxfp4, "mxfp4");
BENCHMARK_CAPTURE(decode_floats, nvfp4, "nvfp4");
BENCHMARK_CAPTURE(decode_floats, mxfp8, "mxfp8");
BENCHMARK_CAPTURE(decode_floats, fp8_block, "fp8-block");

}  // namespace
}  // namespace nibble

BENCHMARK_MAIN();
