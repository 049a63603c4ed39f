#include "nibble/train/export/rounded_roles.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "nibble/base/error.h"
#include "nibble/checkpoint/convention.h"
#include "nibble/models/policy.h"

namespace nibble {
namespace {

bool holds_role(const TrainedTensors& tensors, Role role) {
  return std::ranges::any_of(tensors.list(), [&](const TrainedTensor& t) { return t.role == role && t.is_matrix(); });
}

void check_blocks(const TrainedTensor& tensor, const Format& format) {
  for (const uint64_t rows : tensor.parts) {
    const auto problem = check_shape(format, rows, tensor.cols);
    if (!problem) continue;
    Error refusal("a weight cannot be trained in this format: " + problem->reason);
    refusal.tensor(tensor.name).value("format", format.name).value("width", tensor.cols);
    if (format.block_cols != 0) refusal.value("group", format.block_cols);
    if (!problem->legal_groups.empty()) {
      refusal.way_out(fmt::format("choose one of the groups {}", fmt::join(problem->legal_groups, ", ")));
    }
    throw std::move(refusal.way_out("make the model's widths multiples of the group"));
  }
}

}  // namespace

std::vector<Role> rounded_roles(const TrainedTensors& tensors, const RoundingConfig& rounding) {
  if (!rounding.roles.empty()) return rounding.roles;
  return {holds_role(tensors, Role::kRoutedExpert) ? Role::kRoutedExpert : Role::kDenseMlp};
}

std::vector<bool> low_bit_tensors(const TrainedTensors& tensors, const RoundingConfig& rounding) {
  const std::vector<Role> roles = rounded_roles(tensors, rounding);
  for (const Role role : roles) {
    const bool never = keep16_by_role(role) == Keep16::kAlways;
    if (holds_role(tensors, role) && !never) continue;
    throw Error(never ? "weights of this role stay in 16 bits" : "the model has no matrix of this role")
        .value("role", std::string(role_name(role)))
        .value("family", tensors.spec().family)
        .way_out("leave `roles` out for the usual ones");
  }
  std::vector<bool> low_bit;
  low_bit.reserve(tensors.list().size());
  for (const TrainedTensor& tensor : tensors.list()) {
    low_bit.push_back(tensor.is_matrix() && std::ranges::find(roles, tensor.role) != roles.end());
    if (low_bit.back()) check_blocks(tensor, rounding.format);
  }
  return low_bit;
}

std::string layout_of_export(const TrainedTensors& tensors, const RoundingConfig& rounding) {
  if (!rounding.layout.empty()) return rounding.layout;
  for (const Convention* convention : conventions()) {
    if (convention->is_own_layout_of(tensors.spec().family, rounding.format)) return std::string(convention->name());
  }
  return std::string(kDefaultLayout);
}

SecondLevel second_level_of(const TrainedTensors& tensors, const RoundingConfig& rounding) {
  if (!rounding.format.two_level) return SecondLevel::kNone;
  return parse_layout(layout_of_export(tensors, rounding), rounding.format).second_level();
}

bool slices_share_scale(const TrainedTensors& tensors, const RoundingConfig& rounding) {
  if (!rounding.format.two_level) return false;
  const Convention& layout = parse_layout(layout_of_export(tensors, rounding), rounding.format);
  WriteRequest request;
  request.format = rounding.format;
  for (const ParamSpec& param : tensors.params()) {
    if (param.fusion == Fusion::kNone || param.shape.size() != 3) continue;
    request.name = param.name;
    request.shape = param.shape;
    request.transposed = param.transposed_when_dense;
    return layout.one_second_scale(request);
  }
  return false;
}

}  // namespace nibble
