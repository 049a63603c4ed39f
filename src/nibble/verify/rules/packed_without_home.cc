// Packed or 8-bit data that nothing explains: an integer matrix, or 8-bit floats, whose scale is nowhere. Readers
// report what they recognise as a broken module (`unmatched-part`); this catches what looks like weights to none of
// them.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "nibble/verify/rule_helpers.h"

namespace nibble {
namespace {

constexpr std::string_view kName = "packed-without-home";

bool looks_packed(Dtype dtype) {
  switch (dtype) {
    case Dtype::kU8:
    case Dtype::kI8:
    case Dtype::kI32:
    case Dtype::kU32:
    case Dtype::kF4: return true;
    default: return false;
  }
}

// One fault, one line; a note ("unknown to the family, copied") is no substitute for it.
std::set<std::string_view> refused_tensors(const VerifyContext& context) {
  std::set<std::string_view> names;
  for (const Finding& finding : *context.reported) {
    if (finding.severity != Severity::kNote) names.insert(finding.tensor);
  }
  return names;
}

Finding home_finding(const VerifyContext& context, size_t w, const StoredTensor& tensor, Severity severity) {
  return part_finding(
      context, w, PartKind::kCodes, severity, kName,
      fmt::format(
          "a matrix of type {} and shape {} without any scale: if it holds packed weights their scales are missing "
          "or misnamed",
          dtype_name(tensor.dtype), shape_text(tensor.shape)),
      {{"dtype", std::string(dtype_name(tensor.dtype))},
       {"shape", shape_text(tensor.shape)},
       {"bytes", std::to_string(tensor.bytes)}});
}

void check(const VerifyContext& context, Findings* findings) {
  const auto& weights = context.model->table.weights();
  const auto refused = refused_tensors(context);
  const bool any_quantized = std::any_of(
      weights.begin(), weights.end(), [](const Weight& weight) { return !weight.opaque && !weight.format.is_dense(); });
  for (size_t w = 0; w < weights.size(); ++w) {
    if (weights[w].parts.empty()) continue;
    const StoredTensor& tensor = context.checkpoint->tensors()[weights[w].parts.front().tensor];
    if (refused.contains(tensor.name) || refused.contains(weights[w].name) || tensor.shape.size() < 2) continue;
    const bool known = context.model->params[w].role != Role::kUnknown;
    if (weights[w].opaque) {
      // A table of integers that the family lists (token to expert) is no weight; of an unknown family nobody knows.
      if (known || !looks_packed(tensor.dtype)) continue;
      const bool family = context.model->family != nullptr;
      findings->push_back(home_finding(context, w, tensor, family ? Severity::kError : Severity::kWarning));
    } else if (weights[w].format.is_dense() && element_bits(weights[w].format.element) == 8) {
      // Where other 8-bit matrices have scales, one without has lost it; else the file may mean a plain cast.
      findings->push_back(home_finding(context, w, tensor, any_quantized ? Severity::kError : Severity::kWarning));
    }
  }
}

}  // namespace

extern const Rule kPackedWithoutHome = {kName, "packed or 8-bit matrices that no scale belongs to", check};

}  // namespace nibble
