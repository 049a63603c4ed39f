// Which instance of a kernel's template multiplies a layout: one table for all instruction sets. A family is a type
// local to its source, so that each source has instances of its own:
//
//   template <CodeKind, ScaleType, ZeroPoint, size_t kRun> static void panel(const PanelTask&);
//   static constexpr bool kFloats;  // whether it takes E4M3, BF16 and float32 weights too; then kRun is 0
#pragma once

#include <cstddef>
#include <string>

#include "nibble/kernels/panel.h"

namespace nibble {

template <class Family, CodeKind kCodes, ScaleType kScale, ZeroPoint kZero>
Panel instance_for(const WeightLayout& layout) {
  if constexpr (Family::kFloats) return Family::template panel<kCodes, kScale, kZero, 0>;
  if constexpr (!Family::kFloats) {
    if (layout.run_cols() == 32) return Family::template panel<kCodes, kScale, kZero, 32>;
    return Family::template panel<kCodes, kScale, kZero, 16>;
  }
}

template <class Family, CodeKind kCodes, ZeroPoint kZero>
Panel by_float_scale(const WeightLayout& layout) {
  switch (layout.scale) {
    case ScaleType::kBF16: return instance_for<Family, kCodes, ScaleType::kBF16, kZero>(layout);
    case ScaleType::kF16: return instance_for<Family, kCodes, ScaleType::kF16, kZero>(layout);
    case ScaleType::kF32: return instance_for<Family, kCodes, ScaleType::kF32, kZero>(layout);
    default: return nullptr;
  }
}

template <class Family>
Panel by_float_codes(const WeightLayout& layout) {
  if constexpr (Family::kFloats) {
    constexpr ZeroPoint kNone = ZeroPoint::kNone;
    if (layout.codes == CodeKind::kE4M3) {
      if (layout.scale == ScaleType::kE8M0)
        return instance_for<Family, CodeKind::kE4M3, ScaleType::kE8M0, kNone>(layout);
      if (layout.scale == ScaleType::kNone)
        return instance_for<Family, CodeKind::kE4M3, ScaleType::kNone, kNone>(layout);
    }
    if (layout.codes == CodeKind::kBF16) return instance_for<Family, CodeKind::kBF16, ScaleType::kNone, kNone>(layout);
    if (layout.codes == CodeKind::kF32) return instance_for<Family, CodeKind::kF32, ScaleType::kNone, kNone>(layout);
  }
  return nullptr;
}

// Null where the family has no instance.
template <class Family>
Panel panel_from_table(const WeightLayout& layout) {
  switch (layout.codes) {
    case CodeKind::kE2M1:
      if (layout.scale == ScaleType::kE8M0)
        return instance_for<Family, CodeKind::kE2M1, ScaleType::kE8M0, ZeroPoint::kNone>(layout);
      if (layout.scale == ScaleType::kE4M3)
        return instance_for<Family, CodeKind::kE2M1, ScaleType::kE4M3, ZeroPoint::kNone>(layout);
      return nullptr;
    case CodeKind::kInt4:
      if (layout.zero == ZeroPoint::kCode) return by_float_scale<Family, CodeKind::kInt4, ZeroPoint::kCode>(layout);
      if (layout.zero == ZeroPoint::kMin) return by_float_scale<Family, CodeKind::kInt4, ZeroPoint::kMin>(layout);
      return by_float_scale<Family, CodeKind::kInt4, ZeroPoint::kNone>(layout);
    case CodeKind::kInt8: return by_float_scale<Family, CodeKind::kInt8, ZeroPoint::kNone>(layout);
    default: return by_float_codes<Family>(layout);
  }
}

// Why the family has no instance; "" if it has one.
template <class Family>
std::string obstacle_from_table(const WeightLayout& layout) {
  if (panel_from_table<Family>(layout) != nullptr) return "";
  return Family::kFloats ? "no code for this pair of element and scale type"
                         : "it takes 4-bit and 8-bit integers and E2M1, with a scale in each tile";
}

}  // namespace nibble
