#include "nibble/kernels/e2m1_activations.h"

#include <limits>

#include "nibble/base/check.h"
#include "nibble/numerics/quantizer.h"

namespace nibble {

std::string e2m1_activation_format(const WeightLayout& layout) {
  if (layout.codes != CodeKind::kE2M1) return "";
  if (layout.scale == ScaleType::kE8M0 && layout.tile_cols == 32) return "mxfp4";
  return layout.scale == ScaleType::kE4M3 && layout.tile_cols == 16 ? "nvfp4" : "";
}

E2M1Activations E2M1Quantizer::run(const WeightLayout& layout, const float* x, uint64_t tokens, uint64_t stride,
                                   ThreadPool* pool) {
  const Format format = parse_format(e2m1_activation_format(layout));
  // Multiplied, as releases for tensor cores store it.
  const Quantizer quantizer({.format = format, .rule = default_rule(format), .second_level = SecondLevel::kMultiply});
  const uint64_t code_bytes = format.code_row_bytes(layout.k), blocks = format.scale_cols(layout.k);
  codes_.assign(tokens * code_bytes, std::byte{0});
  scales_.assign(tokens * blocks, std::byte{0});
  second_.assign(tokens, 1.0F);
  const auto quantize = [&](uint64_t t) {
    const DenseView row{reinterpret_cast<const std::byte*>(x + t * stride), Element::kF32, 1, layout.k, layout.k * 4};
    const AbsMax most = abs_max(row);
    if (most.bad) {
      second_[t] = std::numeric_limits<float>::quiet_NaN();
      return;
    }
    const TensorScale scale = quantizer.needs_amax() ? quantizer.tensor_scale(most.amax, Element::kF32) : TensorScale{};
    MutableEncodedView out;
    out.format = &format;
    out.rows = 1;
    out.cols = layout.k;
    out.codes = codes_.data() + t * code_bytes;
    out.scales = scales_.data() + t * blocks;
    out.tensor_scale = scale;
    NIBBLE_CHECK(!quantizer.encode(row, scale, out, nullptr));
    if (format.two_level) second_[t] = scale.value;
  };
  if (pool != nullptr) {
    pool->run(tokens, quantize);
  } else {
    for (uint64_t t = 0; t < tokens; ++t) quantize(t);
  }
  return {codes_.data(), scales_.data(), second_.data(), tokens, code_bytes, blocks};
}

}  // namespace nibble
