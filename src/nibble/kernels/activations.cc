#include "nibble/kernels/activations.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "nibble/base/check.h"
#include "nibble/base/checked_math.h"
#include "nibble/kernels/cpu/int8_group.h"
#include "nibble/numerics/activations.h"
#include "nibble/numerics/codec/bf16.h"
#include "nibble/numerics/codec/e4m3.h"

namespace nibble {
namespace {

constexpr uint64_t kAlignment = 64;

int32_t offset_of(const WeightLayout& layout) {
  switch (layout.codes) {
    case CodeKind::kE2M1: return 12;
    case CodeKind::kInt4: return layout.zero != ZeroPoint::kNone ? 0 : 8;
    case CodeKind::kInt8: return 128;
    default: NIBBLE_CHECK(false); return 0;
  }
}

bool is_four_bit(const WeightLayout& layout) {
  return layout.codes == CodeKind::kE2M1 || layout.codes == CodeKind::kInt4;
}

void round_row(const float* x, uint64_t n, ActivationRounding rounding, float* out) {
  switch (rounding) {
    case ActivationRounding::kNone: std::memcpy(out, x, n * sizeof(float)); return;
    case ActivationRounding::kBF16:
      for (uint64_t i = 0; i < n; ++i) out[i] = bf16_round(x[i]);
      return;
    case ActivationRounding::kE4M3: {
      // Without the floor of some releases: a group of tiny numbers keeps them.
      const ActivationQuantization how{.element = Element::kE4M3, .group = 128, .floor = 0};
      std::vector<std::byte> codes(n);
      std::vector<float> scales(ceil_div(n, how.group));
      const DenseView row{reinterpret_cast<const std::byte*>(x), Element::kF32, 1, n, n * sizeof(float)};
      quantize_activations_1xn(row, how, codes.data(), scales.data());
      for (uint64_t i = 0; i < n; ++i) out[i] = e4m3_decode(std::to_integer<uint8_t>(codes[i])) * scales[i / how.group];
      return;
    }
  }
}

}  // namespace

std::byte* ActivationBuffer::aligned(uint64_t bytes) {
  std::byte* start = buffer_.get(bytes + kAlignment).data();
  return start + (kAlignment - reinterpret_cast<uintptr_t>(start) % kAlignment) % kAlignment;
}

Int8Activations Int8Quantizer::run(const WeightLayout& layout, const float* x, uint64_t tokens, uint64_t stride,
                                   ThreadPool* pool) {
  const uint64_t group = layout.run_cols();
  const uint64_t padded = layout.padded_k();
  const uint64_t groups = padded / group;
  auto* codes = codes_.get<int8_t>(tokens * padded);
  auto* scales = scales_.get<float>(tokens * groups);
  auto* corrections = corrections_.get<int32_t>(tokens * groups);
  auto* sums = layout.zero != ZeroPoint::kNone ? sums_.get<int32_t>(tokens * groups) : nullptr;
  const Int8GroupLoop loop = int8_group_loop(group, is_four_bit(layout));
  const float factor = layout.codes == CodeKind::kE2M1 ? 0.5F : 1.0F;
  const int32_t offset = offset_of(layout);
  const auto quantize = [&](uint64_t t) {
    const float* row = x + t * stride;
    for (uint64_t g = 0; g < groups; ++g) {
      const uint64_t begin = g * group;
      alignas(64) float padded_group[32];
      const float* values = row + begin;
      if (begin + group > layout.k) {
        std::fill_n(padded_group, group, 0.0F);
        if (begin < layout.k) std::memcpy(padded_group, values, (layout.k - begin) * sizeof(float));
        values = padded_group;
      }
      const Int8Group result = loop(values, codes + t * padded + begin);
      scales[t * groups + g] = result.scale * factor;
      corrections[t * groups + g] = -offset * result.sum;
      if (sums != nullptr) sums[t * groups + g] = result.sum;
    }
  };
  if (pool != nullptr) {
    pool->run(tokens, quantize);
  } else {
    for (uint64_t t = 0; t < tokens; ++t) quantize(t);
  }
  return {codes, scales, corrections, sums, tokens, groups, padded};
}

BF16Activations BF16Rounder::run(const WeightLayout& layout, const float* x, uint64_t tokens, uint64_t stride) {
  const uint64_t padded = layout.padded_k();
  auto* values = values_.get<uint16_t>(tokens * padded);
  for (uint64_t t = 0; t < tokens; ++t) {
    uint16_t* row = values + t * padded;
    for (uint64_t c = 0; c < layout.k; ++c) row[c] = bf16_encode(x[t * stride + c]);
    std::fill_n(row + layout.k, padded - layout.k, uint16_t{0});
  }
  return {values, tokens, padded};
}

F32Activations F32Padder::run(const WeightLayout& layout, const float* x, uint64_t tokens, uint64_t stride,
                              ActivationRounding rounding) {
  const uint64_t padded = layout.padded_k();
  F32Activations result{x, tokens, stride, nullptr, padded / layout.run_cols()};
  if (padded != layout.k || rounding != ActivationRounding::kNone) {
    auto* values = values_.get<float>(tokens * padded);
    for (uint64_t t = 0; t < tokens; ++t) {
      round_row(x + t * stride, layout.k, rounding, values + t * padded);
      std::fill_n(values + t * padded + layout.k, padded - layout.k, 0.0F);
    }
    result.values = values;
    result.stride = padded;
  }
  if (layout.zero != ZeroPoint::kMin) return result;
  auto* sums = sums_.get<float>(tokens * result.runs);
  for (uint64_t t = 0; t < tokens; ++t) {
    for (uint64_t r = 0; r < result.runs; ++r) {
      const float* run = result.row(t) + r * layout.run_cols();
      float even = 0, odd = 0;
      for (uint64_t c = 0; c < layout.run_cols(); c += 2) {
        even += run[c];
        odd += run[c + 1];
      }
      sums[t * result.runs + r] = even + odd;
    }
  }
  result.run_sums = sums;
  return result;
}

}  // namespace nibble
