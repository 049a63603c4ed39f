#include "nibble/models/expert_forms.h"

#include <utility>

#include "nibble/base/check.h"

namespace nibble {
namespace {

std::string experts_prefix(const ModelSpec& spec, int32_t layer) {
  const std::string& block = spec.expert_naming.block;
  return spec.layer_prefix(layer) + block + (block.empty() ? "experts." : ".experts.");
}

// One parameter of an expert block; MTP layers' experts are MTP's first and experts second.
ParamSpec expert_param(const ModelSpec& spec, int32_t layer, bool bias) {
  ParamSpec param;
  const bool mtp = layer >= static_cast<int32_t>(spec.layers.size());
  param.role = mtp ? Role::kMtp : bias ? Role::kBias : Role::kRoutedExpert;
  param.optional = mtp;
  param.layer = layer;
  return param;
}

bool is_gated(const ModelSpec& spec) { return !spec.expert_naming.gate.empty(); }

uint64_t rows_of(const ModelSpec& spec, Projection projection) {
  if (projection == Projection::kDown) return spec.expert_width();
  return projection == Projection::kGateUp ? 2 * spec.expert_intermediate : spec.expert_intermediate;
}

uint64_t cols_of(const ModelSpec& spec, Projection projection) {
  return projection == Projection::kDown ? spec.expert_intermediate : spec.expert_width();
}

void visit_one_expert(const ModelSpec& spec, int32_t layer, uint64_t expert, const ParamVisitor& visit) {
  ExpertNames names = per_expert_names(spec, layer, expert);
  const auto emit = [&](std::string&& name, std::string&& bias_name, Projection projection) {
    ParamSpec param = expert_param(spec, layer, false);
    param.name = std::move(name);
    param.projection = projection;
    param.expert = static_cast<int32_t>(expert);
    param.shape = {rows_of(spec, projection), cols_of(spec, projection)};
    visit(std::move(param));
    if (bias_name.empty()) return;
    ParamSpec bias = expert_param(spec, layer, true);
    bias.name = std::move(bias_name);
    bias.projection = projection;
    bias.expert = static_cast<int32_t>(expert);
    bias.shape = {rows_of(spec, projection)};
    visit(std::move(bias));
  };
  if (!names.gate.empty()) emit(std::move(names.gate), std::move(names.gate_bias), Projection::kGate);
  emit(std::move(names.up), std::move(names.up_bias), Projection::kUp);
  emit(std::move(names.down), std::move(names.down_bias), Projection::kDown);
}

void visit_stack(const ModelSpec& spec, int32_t layer, Projection projection, Fusion fusion,
                 const ParamVisitor& visit) {
  ParamSpec param = expert_param(spec, layer, false);
  param.name = fused_name(spec, layer, projection);
  param.projection = projection;
  param.fusion = fusion;
  param.shape = {spec.experts, rows_of(spec, projection), cols_of(spec, projection)};
  visit(std::move(param));
  if (!spec.expert_naming.biases) return;
  ParamSpec bias = expert_param(spec, layer, true);
  bias.name = fused_bias_name(spec, layer, projection);
  bias.projection = projection;
  bias.fusion = fusion;
  bias.shape = {spec.experts, rows_of(spec, projection)};
  visit(std::move(bias));
}

const std::string& own_stack(const StackNames& names, Projection projection) {
  switch (projection) {
    case Projection::kGate: return names.gate;
    case Projection::kUp: return names.up;
    case Projection::kDown: return names.down;
    default: break;
  }
  NIBBLE_CHECK(projection == Projection::kGateUp);
  return names.gate_up;
}

std::string_view projection_name(Projection projection) {
  switch (projection) {
    case Projection::kGate: return "gate_proj";
    case Projection::kUp: return "up_proj";
    case Projection::kDown: return "down_proj";
    default: break;
  }
  NIBBLE_CHECK(projection == Projection::kGateUp);
  return "gate_up_proj";
}

}  // namespace

ExpertStorage native_form(const ModelSpec& spec) {
  switch (spec.expert_naming.native) {
    case Fusion::kStackedExperts: return ExpertStorage::kStacked;
    case Fusion::kGateThenUp: return ExpertStorage::kGateThenUp;
    case Fusion::kInterleaved: return ExpertStorage::kInterleaved;
    case Fusion::kNone: break;
  }
  return ExpertStorage::kPerExpert;
}

void visit_experts(const ModelSpec& spec, int32_t layer, ExpertStorage form, const ParamVisitor& visit) {
  switch (form) {
    case ExpertStorage::kPerExpert:
      for (uint64_t expert = 0; expert < spec.experts; ++expert) visit_one_expert(spec, layer, expert, visit);
      return;
    case ExpertStorage::kStacked:
      if (is_gated(spec)) visit_stack(spec, layer, Projection::kGate, Fusion::kStackedExperts, visit);
      visit_stack(spec, layer, Projection::kUp, Fusion::kStackedExperts, visit);
      visit_stack(spec, layer, Projection::kDown, Fusion::kStackedExperts, visit);
      return;
    case ExpertStorage::kGateThenUp:
    case ExpertStorage::kInterleaved: break;
  }
  const bool transposed = spec.expert_naming.transposed && form == native_form(spec);
  const auto mark = [&](ParamSpec&& param) {
    param.transposed_when_dense = transposed && param.shape.size() == 3;
    visit(std::move(param));
  };
  visit_stack(spec, layer, Projection::kGateUp,
              form == ExpertStorage::kInterleaved ? Fusion::kInterleaved : Fusion::kGateThenUp, mark);
  visit_stack(spec, layer, Projection::kDown, Fusion::kStackedExperts, mark);
}

ExpertNames per_expert_names(const ModelSpec& spec, int32_t layer, uint64_t expert) {
  const ExpertNaming& naming = spec.expert_naming;
  const std::string prefix = experts_prefix(spec, layer) + std::to_string(expert) + ".";
  ExpertNames names{is_gated(spec) ? prefix + naming.gate + ".weight" : "",
                    prefix + naming.up + ".weight",
                    prefix + naming.down + ".weight",
                    {},
                    {},
                    {}};
  if (naming.biases) {
    if (is_gated(spec)) names.gate_bias = prefix + naming.gate + ".bias";
    names.up_bias = prefix + naming.up + ".bias";
    names.down_bias = prefix + naming.down + ".bias";
  }
  return names;
}

std::string fused_name(const ModelSpec& spec, int32_t layer, Projection projection) {
  const std::string& own = own_stack(spec.expert_naming.stacks, projection);
  if (!own.empty()) return spec.layer_prefix(layer) + own;
  return experts_prefix(spec, layer).append(projection_name(projection));
}

std::string fused_bias_name(const ModelSpec& spec, int32_t layer, Projection projection) {
  return fused_name(spec, layer, projection) + "_bias";
}

}  // namespace nibble
