// How libraries of the field quantize where their bytes differ from nibble's own rules (FORMATS.md §2, checked against
// the libraries' own output in tests/golden/numerics). compressed-tensors computes scales and quotients in the weights'
// type; ModelOpt in float32, but for the quotient under one scale for a tensor; ggml has its own rounding.
#pragma once

#include <string_view>

#include "nibble/numerics/element_codec.h"
#include "nibble/numerics/quantizer.h"
#include "nibble/numerics/scale_rule.h"

namespace nibble {

struct BitExactRecipe {
  std::string_view rule;
  bool (*applies)(const Format& format);
  BitExact who;
  bool quotient_in_weight_type = false;
  ZeroSign zero_sign = ZeroSign::kCanonical;
  Ties ties = Ties::kEven;
  // As in ScaleRule, for weights stored as `weights`. null: the rule's own.
  TensorScale (*tensor_scale)(const Format& format, float amax, Element weights) = nullptr;
  void (*block_scales)(const Format& format, const BlockStatsArrays& stats, uint64_t count,
                       const TensorScale& tensor_scale, Element weights, const BlockScaleArrays& out) = nullptr;
  // What elements are divided by instead of the stored scale.
  float (*divisor)(const BlockStats& stats) = nullptr;

  Arithmetic arithmetic(Element weights) const {
    return {quotient_in_weight_type ? weights : Element::kF32, zero_sign, ties};
  }
};

// null if that library writes no such bytes.
const BitExactRecipe* bit_exact_recipe(BitExact who, const Format& format);

}  // namespace nibble
