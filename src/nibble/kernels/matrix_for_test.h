// Random matrices in every layout, for tests of kernels.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "nibble/base/rng.h"
#include "nibble/kernels/kernel.h"
#include "nibble/kernels/pack.h"
#include "nibble/numerics/codec/bits.h"
#include "nibble/numerics/decode.h"
#include "nibble/numerics/scale_codec.h"

namespace nibble {

// The next number of a stream.
struct RngForTest {
  uint64_t seed = 0, index = 0;
  uint32_t next_u32() { return static_cast<uint32_t>(random_bits(seed, index++)); }
  double uniform() { return random_uniform(seed, index++); }
  float normal() { return static_cast<float>(random_normal(seed, index++)); }
};

// Formats that kernels have a layout for, one for each pair of element, scale type and way of sharing scales.
inline std::vector<std::string> layout_formats_for_test() {
  return {"mxfp4",          "nvfp4",         "int4-g16",   "int4-g32", "int4-g48", "int4-g64",
          "int4-g128",      "int4-g32-asym", "q4_1",       "int8-g32", "int8-g16", "fp8-block",
          "fp8-block16x32", "fp8-channel",   "fp8-tensor", "mxfp8",    "bf16",     "f32"};
}

// Random codes and scales, all finite, of ordinary size.
inline EncodedMatrix random_matrix_for_test(const Format& format, uint64_t n, uint64_t k, RngForTest* rng) {
  EncodedMatrix matrix = EncodedMatrix::make(format, n, k);
  for (auto& byte : matrix.codes) byte = static_cast<std::byte>(rng->next_u32());
  if (format.element == Element::kE4M3) {
    for (auto& byte : matrix.codes) {
      if ((byte & std::byte{0x7f}) == std::byte{0x7f}) byte = std::byte{0x31};
    }
  }
  if (format.is_dense()) {
    std::vector<float> values(n * k);
    for (float& value : values) value = static_cast<float>(rng->uniform() * 2 - 1);
    const DenseView dense{reinterpret_cast<const std::byte*>(values.data()), Element::kF32, n, k, k * 4};
    convert(dense, format.element, matrix.codes.data());
  }
  const uint64_t size = format.is_dense() ? 0 : format.scale_bytes();
  for (uint64_t at = 0; size != 0 && at < matrix.scales.size(); at += size) {
    const uint32_t bits = scale_encode(format.scale, static_cast<float>(std::exp2(rng->uniform() * 6 - 3)));
    std::memcpy(matrix.scales.data() + at, &bits, size);
  }
  for (auto& zero : matrix.zeros) zero = static_cast<uint8_t>(rng->next_u32() % 16);
  for (auto& min : matrix.mins) min = static_cast<float>(rng->uniform() * 4 - 3);
  if (format.two_level) matrix.tensor_scale = {SecondLevel::kMultiply, 0.0123F};
  return matrix;
}

// An encoded matrix and its tiles.
struct PackedForTest {
  EncodedMatrix encoded;
  WeightLayout layout;
  std::vector<std::byte> memory;
  ResidentMatrix matrix;

  PackedForTest(const std::string& format_name, uint64_t n, uint64_t k, RngForTest* rng) {
    const Format format = parse_format(format_name);
    encoded = random_matrix_for_test(format, n, k, rng);
    layout = choose_layout(format, n, k).layout.value();
    memory.resize(layout.bytes() + 64, std::byte{0xee});
    auto* data = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64;
    pack_rows(layout, encoded.view(), 0, data);
    matrix = {layout, data, multiplier_of(format, encoded.tensor_scale)};
  }
  PackedForTest(const PackedForTest&) = delete;
  PackedForTest& operator=(const PackedForTest&) = delete;
};

inline bool same_bits_for_test(const float* a, const float* b, uint64_t n) {
  return std::equal(a, a + n, b, [](float x, float y) { return float_bits(x) == float_bits(y); });
}

// Activations in the form that a kind of kernel takes, in memory of its own.
class ActivationsForTest {
 public:
  // Rows `stride` floats apart; valid until the next call for the same kind.
  void prepare(ActivationKind kind, const WeightLayout& layout, const float* rows, uint64_t count, uint64_t stride,
               PanelTask* task) {
    switch (kind) {
      case ActivationKind::kF32: task->f32 = padder_.run(layout, rows, count, stride); return;
      case ActivationKind::kInt8: task->int8 = quantizer_.run(layout, rows, count, stride); return;
      case ActivationKind::kE2M1: task->e2m1 = e2m1_quantizer_.run(layout, rows, count, stride); return;
      case ActivationKind::kBF16: task->bf16 = rounder_.run(layout, rows, count, stride); return;
    }
  }

 private:
  F32Padder padder_;
  Int8Quantizer quantizer_;
  E2M1Quantizer e2m1_quantizer_;
  BF16Rounder rounder_;
};

}  // namespace nibble
