#include "nibble/models/matcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "nibble/base/strings.h"
#include "nibble/models/leftovers.h"

namespace nibble {
namespace {

bool of_expert(const ParamSpec& param) { return param.expert >= 0 || param.fusion != Fusion::kNone; }

std::string shape_text(const std::vector<uint64_t>& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

// Dimensions of 1 do not count: [1, 64] and [64] are the same bytes to everybody.
std::vector<uint64_t> without_ones(std::vector<uint64_t> shape) {
  shape.erase(std::remove(shape.begin(), shape.end(), uint64_t{1}), shape.end());
  return shape;
}

std::vector<uint64_t> transposed(std::vector<uint64_t> shape) {
  std::swap(shape[shape.size() - 2], shape.back());
  return shape;
}

}  // namespace

Matcher::Matcher(const Checkpoint& checkpoint, Model* model, Findings* findings)
    : checkpoint_(checkpoint), model_(*model), findings_(*findings) {
  const auto& weights = model_.table.weights();
  names_.reserve(weights.size());
  for (const Weight& weight : weights) names_.insert(weight.name);
  matched_.resize(weights.size());
  model_.params.resize(weights.size());
}

void Matcher::run() {
  model_.family->inventory(model_.spec, [this](ParamSpec&& param) { visit(std::move(param)); });
  classify_rest();
  report();
}

void Matcher::visit(ParamSpec&& param) {
  if (!of_expert(param)) {
    place(std::move(param));
    return;
  }
  const LayerForms& forms = forms_of(param.layer);
  const bool down = param.projection == Projection::kDown;
  if ((down ? forms.down : forms.gate_up) == native_form(model_.spec)) place(std::move(param));
}

// Decides how a layer's experts are stored when its first one is met, and places those of other forms at once.
const Matcher::LayerForms& Matcher::forms_of(int32_t layer) {
  const auto [it, added] = forms_.try_emplace(layer);
  if (!added) return it->second;
  it->second.gate_up = gate_up_form(layer);
  it->second.down = down_form(layer, it->second.gate_up);
  const ExpertStorage native = native_form(model_.spec);
  for (const bool down : {false, true}) {
    const ExpertStorage form = down ? it->second.down : it->second.gate_up;
    if (form == native) continue;
    visit_experts(model_.spec, layer, form, [&](ParamSpec&& param) {
      if ((param.projection == Projection::kDown) == down) place(std::move(param));
    });
  }
  return it->second;
}

ExpertStorage Matcher::gate_up_form(int32_t layer) const {
  const ExpertStorage native = native_form(model_.spec);
  const int64_t pair = names_.find(fused_name(model_.spec, layer, Projection::kGateUp));
  if (pair >= 0) return interleaved(pair) ? ExpertStorage::kInterleaved : ExpertStorage::kGateThenUp;
  for (const Projection projection : {Projection::kGate, Projection::kUp}) {
    if (names_.find(fused_name(model_.spec, layer, projection)) >= 0) return ExpertStorage::kStacked;
    if (native != ExpertStorage::kPerExpert && any_expert_alone(layer, projection)) return ExpertStorage::kPerExpert;
  }
  return native;
}

ExpertStorage Matcher::down_form(int32_t layer, ExpertStorage gate_up) const {
  const ExpertStorage native = native_form(model_.spec);
  if (names_.find(fused_name(model_.spec, layer, Projection::kDown)) >= 0) {
    // Down alone is the same stack in all fused forms, but for gpt-oss' dense files, which only its own form knows.
    return gate_up == ExpertStorage::kPerExpert ? native == ExpertStorage::kPerExpert ? ExpertStorage::kStacked : native
                                                : gate_up;
  }
  if (native != ExpertStorage::kPerExpert && any_expert_alone(layer, Projection::kDown))
    return ExpertStorage::kPerExpert;
  return native;
}

bool Matcher::any_expert_alone(int32_t layer, Projection projection) const {
  for (uint64_t expert = 0; expert < model_.spec.experts; ++expert) {
    const ExpertNames names = per_expert_names(model_.spec, layer, expert);
    const std::string& name = projection == Projection::kGate ? names.gate
                              : projection == Projection::kUp ? names.up
                                                              : names.down;
    if (names_.find(name) >= 0) return true;
  }
  return false;
}

// Row by row or half by half: a convention that fuses says so, otherwise the family does; GGUF always stacks halves.
bool Matcher::interleaved(int64_t weight) const {
  const Weight& stack = model_.table.weights()[static_cast<size_t>(weight)];
  if (stack.convention != nullptr && stack.convention->expert_form(model_.family_name) == ExpertForm::kFusedInterleaved)
    return true;
  return !model_.from_gguf && native_form(model_.spec) == ExpertStorage::kInterleaved;
}

void Matcher::place(ParamSpec&& param) {
  const int64_t weight = names_.find(param.name);
  if (param.role == Role::kHead) {
    head_name_ = param.name;
    (weight >= 0 ? head_present_ : head_missing_) = true;
  }
  if (weight < 0 || matched_[static_cast<size_t>(weight)]) {
    note_missing(param);
    return;
  }
  mtp_present_ = mtp_present_ || param.role == Role::kMtp;
  assign(static_cast<uint32_t>(weight), std::move(param));
}

void Matcher::note_missing(const ParamSpec& param) {
  if (param.role == Role::kMtp) {
    if (param.counted) mtp_missing_.add(param.name);
  } else if (!param.optional && param.role != Role::kHead) {
    empty_.add(param.name);
  }
}

void Matcher::assign(uint32_t index, ParamSpec&& param) {
  Weight& weight = model_.table.weights()[index];
  const bool pairs = model_.from_gguf && model_.family->gguf_rotary_pairs();
  if (param.transposed_when_dense && weight.format.is_dense()) {
    if (weight.shape == transposed(param.shape)) {
      weight.row_order = RowOrder::kTransposed;
      weight.shape = param.shape;
    }
  } else if (pairs && (param.projection == Projection::kQ || param.projection == Projection::kK)) {
    weight.row_order = RowOrder::kGgufRotaryPairs;
    weight.rotary_heads = param.projection == Projection::kQ ? model_.spec.heads : model_.spec.kv_heads;
  }
  check_shape(index, param);
  matched_[index] = true;
  model_.params[index] = std::move(param);
}

void Matcher::check_shape(uint32_t index, const ParamSpec& param) {
  const Weight& weight = model_.table.weights()[index];
  const bool turned = param.transposed_when_dense && weight.format.is_dense();
  const bool fits = turned ? weight.row_order == RowOrder::kTransposed
                           : weight.shape == param.shape || without_ones(weight.shape) == without_ones(param.shape);
  if (fits || !wrong_shape_.add(param.name, index)) return;
  Finding mismatch =
      finding(Severity::kError, "shape-mismatch", wrong_shape_.groups().back(),
              turned ? "the stored shape is not the one that the configuration gives (this family stores "
                       "dense stacks as experts, inputs, outputs)"
                     : "the stored shape is not the one that the configuration gives");
  mismatch.message += "; take config.json and weights from the same release";
  mismatch.values = {{"stored", shape_text(weight.shape)},
                     {"expected", shape_text(turned ? transposed(param.shape) : param.shape)}};
  shape_findings_.push_back(std::move(mismatch));
}

bool Matcher::in_other_part(std::string_view name) const {
  const auto parts = model_.family->other_parts();
  return std::any_of(parts.begin(), parts.end(), [name](std::string_view part) { return starts_with(name, part); });
}

void Matcher::classify_rest() {
  const auto& weights = model_.table.weights();
  const FindParam find = [this](std::string_view name) -> const ParamSpec* {
    const int64_t at = names_.find(name);
    return at >= 0 && matched_[static_cast<size_t>(at)] ? &model_.params[static_cast<size_t>(at)] : nullptr;
  };
  for (uint32_t i = 0; i < weights.size(); ++i) {
    if (matched_[i]) continue;
    ParamSpec& param = model_.params[i];
    if (auto known = classify_leftover(model_.spec, weights[i].name, find)) {
      param = std::move(*known);
      if (param.shape.empty()) param.shape = weights[i].shape;
      check_shape(i, param);
      continue;
    }
    param.name = weights[i].name;
    param.shape = weights[i].shape;
    (in_other_part(param.name) ? other_part_ : unmatched_).add(param.name, i);
  }
}

}  // namespace nibble
