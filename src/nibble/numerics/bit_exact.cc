#include "nibble/numerics/bit_exact.h"

#include <algorithm>

#include "nibble/numerics/rules/applies.h"
#include "nibble/numerics/rules/float_scale.h"
#include "nibble/numerics/rules/mx_scale.h"
#include "nibble/numerics/rules/nv_scale.h"

namespace nibble {
namespace {

// A block_scales function from one that knows a single block. Clamps are the rule's.
template <BlockScale (*kOne)(const Format&, const BlockStats&, const TensorScale&, Element)>
void for_each_block(const Format& format, const BlockStatsArrays& stats, uint64_t count,
                    const TensorScale& tensor_scale, Element weights, const BlockScaleArrays& out) {
  for (uint64_t b = 0; b < count; ++b) {
    BlockStats of_block{.amax = stats.amax[b]};
    if (stats.min != nullptr) of_block.min = stats.min[b];
    if (stats.max != nullptr) of_block.max = stats.max[b];
    if (stats.extreme != nullptr) of_block.extreme = stats.extreme[b];
    const BlockScale scale = kOne(format, of_block, tensor_scale, weights);
    out.stored[b] = scale.stored;
    out.value[b] = scale.value;
    if (out.zero != nullptr) out.zero[b] = scale.zero;
  }
}

// ---- compressed-tensors: every operation rounded to the weights' type

// What it puts in place of a zero scale: the epsilon of the type.
float ct_epsilon(Element weights) {
  return weights == Element::kBF16 ? 0x1p-7f : weights == Element::kF16 ? 0x1p-10f : 0x1p-23f;
}

BlockScale ct_scale_of(const Format& format, float scale, Element weights) {
  BlockScale out;
  out.stored = scale_encode(format.scale, scale == 0 ? ct_epsilon(weights) : scale);
  out.value = scale_decode(format.scale, out.stored);
  return out;
}

BlockScale ct_int4(const Format& format, const BlockStats& stats, const TensorScale&, Element weights) {
  return ct_scale_of(format, round_to(weights, stats.amax / kInt4FullRange), weights);
}

// The zero point is computed with the scale before a zero is replaced: 0/0 becomes 0, and a scale that underflowed
// sends it to its upper end.
BlockScale ct_int4_asym(const Format& format, const BlockStats& stats, const TensorScale&, Element weights) {
  const float scale = round_to(weights, round_to(weights, stats.max - stats.min) / 15.0f);
  BlockScale out = ct_scale_of(format, scale, weights);
  if (scale != 0) {
    out.zero = int4_encode(round_to(weights, -8.0f - round_to(weights, stats.min / scale)));
  } else {
    out.zero = int4_encode(stats.min < 0 ? 7.0f : 0.0f);
  }
  return out;
}

BlockScale ct_fp8(const Format& format, const BlockStats& stats, const TensorScale& tensor, Element weights) {
  if (has_tensor_scale_only(format)) return ct_scale_of(format, tensor.value, weights);
  return ct_scale_of(format, round_to(weights, stats.amax / kE4m3Max), weights);
}

TensorScale ct_fp8_tensor(const Format& format, float amax, Element weights) {
  if (!has_tensor_scale_only(format)) return {};
  return {SecondLevel::kNone, ct_scale_of(format, round_to(weights, amax / kE4m3Max), weights).value};
}

// mx.even on the pattern of the weights' type, with the mantissa of E2M1 for E4M3 as well. Magnitudes whose exponent
// field stays 0 give code 0.
BlockScale ct_mx(const Format& format, const BlockStats& stats, const TensorScale&, Element weights) {
  const MxElement element = format.element == Element::kE2M1 ? kMxE2m1 : kMxE4m3;
  uint32_t biased = (magnitude_bits(stats.amax) + 0x200000u) >> 23;
  if (weights == Element::kF16) {
    const uint32_t exponent = (f16_encode(stats.amax) + 0x100u) >> 10;
    biased = exponent == 0 ? 0 : exponent + 112;
  }
  const uint32_t code = mx_code(biased, element);
  return {.stored = code, .value = e8m0_decode(static_cast<uint8_t>(code))};
}

// `2688 / T` of a tensor library is the reciprocal times 2688, each rounded to the weights' type.
TensorScale ct_nvfp4_tensor(const Format&, float amax, Element weights) {
  const float smallest_normal = weights == Element::kF16 ? 0x1p-14f : 0x1p-126f;
  const float divisor = round_to(weights, round_to(weights, 1.0f / std::max(amax, smallest_normal)) * kNvRange);
  return {SecondLevel::kDivide, is_finite(divisor) ? divisor : 1.0f};
}

BlockScale ct_nvfp4(const Format&, const BlockStats& stats, const TensorScale& tensor, Element weights) {
  const float ratio = tensor.value * round_to(weights, stats.amax / kE2m1Max);
  uint32_t stored = e4m3_magnitude(ratio);
  if (stored == 0) stored = e4m3_magnitude(0.125f);
  return {.stored = stored, .value = e4m3_decode(static_cast<uint8_t>(stored))};
}

// ---- ggml

// Elements are multiplied by the reciprocal of the scale before it is rounded.
float ggml_q4_0_divisor(const BlockStats& stats) { return int4_extreme_scale(stats.extreme); }

BlockScale ggml_q4_0(const Format& format, const BlockStats& stats, const TensorScale&, Element) {
  BlockScale out;
  out.stored = f16_encode(stats.extreme / -8.0f);  // -0 for a block of zeros
  out.value = scale_decode(format.scale, out.stored);
  return out;
}

// ---- which formats

bool is_fp8(const Format& format) { return format.element == Element::kE4M3 && has_float_scale(format); }
bool is_fp8_tensor(const Format& format) { return is_fp8(format) && has_tensor_scale_only(format); }
bool is_fp8_blocked(const Format& format) { return is_fp8(format) && !has_tensor_scale_only(format); }
bool is_mxfp4(const Format& format) { return is_mx(format) && format.element == Element::kE2M1; }
bool is_mxfp8(const Format& format) { return is_mx(format) && format.element == Element::kE4M3; }
bool is_q4_0(const Format& format) {
  return is_symmetric_int4(format) && format.scale == ScaleType::kF16 && format.block_cols == 32;
}

constexpr ZeroSign kIfNegative = ZeroSign::kNegativeIfNegative;

constexpr BitExactRecipe kRecipes[] = {
    {.rule = "int4.amax7_5",
     .applies = is_symmetric_int4,
     .who = BitExact::kCompressedTensors,
     .quotient_in_weight_type = true,
     .block_scales = for_each_block<ct_int4>},
    {.rule = "int4.asym",
     .applies = is_asymmetric_int4,
     .who = BitExact::kCompressedTensors,
     .quotient_in_weight_type = true,
     .block_scales = for_each_block<ct_int4_asym>},
    {.rule = "mx.even",
     .applies = is_mx,
     .who = BitExact::kCompressedTensors,
     .quotient_in_weight_type = true,
     .zero_sign = kIfNegative,
     .block_scales = for_each_block<ct_mx>},
    {.rule = "nv.ct",
     .applies = is_nvfp4,
     .who = BitExact::kCompressedTensors,
     .zero_sign = kIfNegative,
     .tensor_scale = ct_nvfp4_tensor,
     .block_scales = for_each_block<ct_nvfp4>},
    {.rule = "fp8.amax",
     .applies = is_fp8,
     .who = BitExact::kCompressedTensors,
     .quotient_in_weight_type = true,
     .zero_sign = kIfNegative,
     .tensor_scale = ct_fp8_tensor,
     .block_scales = for_each_block<ct_fp8>},
    {.rule = "nv.two_level", .applies = is_nvfp4, .who = BitExact::kModelOpt, .zero_sign = kIfNegative},
    {.rule = "mx.rceil",
     .applies = is_mxfp4,
     .who = BitExact::kModelOpt,
     .zero_sign = ZeroSign::kZeroIsNegative,
     .ties = Ties::kTowardZero},
    {.rule = "mx.rceil", .applies = is_mxfp8, .who = BitExact::kModelOpt, .zero_sign = ZeroSign::kKeepSign},
    {.rule = "fp8.amax",
     .applies = is_fp8_tensor,
     .who = BitExact::kModelOpt,
     .quotient_in_weight_type = true,
     .zero_sign = ZeroSign::kKeepSign},
    {.rule = "fp8.amax", .applies = is_fp8_blocked, .who = BitExact::kModelOpt, .zero_sign = ZeroSign::kKeepSign},
    {.rule = "int4.amax7", .applies = is_symmetric_int4, .who = BitExact::kModelOpt},
    {.rule = "int4.extreme8",
     .applies = is_q4_0,
     .who = BitExact::kGgml,
     .ties = Ties::kUpWithReciprocal,
     .block_scales = for_each_block<ggml_q4_0>,
     .divisor = ggml_q4_0_divisor},
    {.rule = "mx.floor", .applies = is_mxfp4, .who = BitExact::kGgml, .ties = Ties::kTowardZero},
};

}  // namespace

const BitExactRecipe* bit_exact_recipe(BitExact who, const Format& format) {
  for (const BitExactRecipe& recipe : kRecipes) {
    if (recipe.who == who && recipe.applies(format)) return &recipe;
  }
  return nullptr;
}

std::string_view bit_exact_rule(BitExact who, const Format& format) {
  const BitExactRecipe* recipe = bit_exact_recipe(who, format);
  return recipe == nullptr ? std::string_view() : recipe->rule;
}

}  // namespace nibble
