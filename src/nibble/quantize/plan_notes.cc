#include "nibble/quantize/plan_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace nibble {
namespace {

std::string about_default(const Model& model, const QuantizeRequest& request) {
  if (request.format.is_dense() || !request.include.empty() || !request.generic.empty()) return "";
  const auto is_expert = [](const ParamSpec& param) { return param.role == Role::kRoutedExpert; };
  if (std::ranges::any_of(model.params, is_expert)) return "";
  return fmt::format("this model has no experts: role {} is quantized; --include chooses otherwise",
                     role_name(Role::kDenseMlp));
}

// --include replaces the default, which a user who means to add to it does not expect.
std::string about_experts_left_out(const OutputPlan& plan, const QuantizeRequest& request) {
  if (request.format.is_dense() || request.include.empty()) return "";
  uint64_t experts = 0, others = 0;
  std::string kept_in;
  for (const OutWeight& out : plan.outs) {
    const bool low_bit = !out.format.is_dense();
    if (out.param.role != Role::kRoutedExpert) {
      others += low_bit ? 1u : 0u;
    } else if (low_bit) {
      return "";
    } else {
      ++experts;
      kept_in = out.format.name;
    }
  }
  if (experts == 0) return "";
  return fmt::format(
      "--include {} selects {} weight{} and replaces the default: the routed experts ({} weights) are left in {}; add "
      "{} to quantize them too",
      fmt::join(request.include, " "), others, others == 1 ? "" : "s", experts, kept_in,
      role_name(Role::kRoutedExpert));
}

// One kernel call takes all experts of a layer in one format; `verify` calls the rest an error.
std::string about_mixed_experts(const OutputPlan& plan, const QuantizeRequest& request) {
  if (request.format.is_dense()) return "";
  std::map<int32_t, std::pair<uint64_t, uint64_t>> layers;  // quantized, left
  for (const OutWeight& out : plan.outs) {
    if (out.param.role != Role::kRoutedExpert || out.shape.size() < 2) continue;
    auto& [quantized, left] = layers[out.param.layer];
    ++(out.format.is_dense() ? left : quantized);
  }
  std::erase_if(layers, [](const auto& layer) { return layer.second.first == 0 || layer.second.second == 0; });
  if (layers.empty()) return "";
  const auto& [layer, counts] = *layers.begin();
  return fmt::format(
      "experts of {} layer{} are quantized in part (layer {}: {} weights, {} left): engines and `verify` refuse such a "
      "group; select or keep whole layers",
      layers.size(), layers.size() == 1 ? "" : "s", layer, counts.first, counts.second);
}

std::string about_routers(const OutputPlan& plan) {
  const auto routers = std::ranges::count_if(plan.outs, [](const OutWeight& out) {
    return (out.param.role == Role::kRouter || out.param.role == Role::kLatent) && !out.format.is_dense();
  });
  if (routers == 0) return "";
  return fmt::format(
      "{} routers or latent projections are quantized: a small error there sends tokens to other experts, and `verify` "
      "calls it an error; --keep router latent leaves them",
      routers);
}

// Block scales that are no powers of two rarely allow it, and headers do not show them.
std::string about_exact_casts(const OutputPlan& plan, const Model& model, const QuantizeRequest& request) {
  uint64_t casts = 0;
  std::string format;
  for (const OutWeight& out : plan.outs) {
    if (out.route != Route::kRecast || !first_source(model, out).format.two_level) continue;
    ++casts;
    format = first_source(model, out).format.name;
  }
  if (casts == 0) return "";
  return fmt::format(
      "{} weight{} in {} can be re-expressed exactly if the block scales allow it, which shows when they are read: "
      "others are rounded by {}, and the manifest says which",
      casts, casts == 1 ? "" : "s", format, request.rule.name());
}

// Most users of such a checkpoint have chosen it for its accuracy.
std::string about_act_order(const OutputPlan& plan) {
  if (plan.act_ordered == 0) return "";
  return fmt::format(
      "{} weight{} in the format already, but with columns grouped out of order (act-order), which no layout written "
      "here holds: decoded, not taken over as stored",
      plan.act_ordered, plan.act_ordered == 1 ? " is" : "s are");
}

std::string about_unknown(const OutputPlan& plan, const Model& model) {
  std::vector<std::string> unknown;
  for (const OutWeight& out : plan.outs) {
    if (out.action == Action::kCopied && out.param.role == Role::kUnknown) unknown.push_back(out.name);
  }
  if (unknown.empty() || model.family == nullptr) return "";
  const size_t shown = std::min<size_t>(unknown.size(), 8);
  return fmt::format("{} tensor{} unknown to the family, copied: {}{}", unknown.size(), unknown.size() == 1 ? "" : "s",
                     fmt::join(unknown.begin(), unknown.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                     unknown.size() > shown ? ", …" : "");
}

std::string about_large_shards(const OutputPlan& plan, const QuantizeRequest& request) {
  uint64_t larger = 0, largest = 0;
  for (const OutShard& shard : plan.shards) {
    if (shard.file_bytes <= request.shard_bytes) continue;
    ++larger;
    largest = std::max(largest, shard.file_bytes);
  }
  if (larger == 0) return "";
  return fmt::format(
      "{} of {} shards are larger than the {} bytes asked for, up to {}: tensors that are made together lie in one "
      "file",
      larger, plan.shards.size(), request.shard_bytes, largest);
}

}  // namespace

std::vector<std::string> plan_notes(const OutputPlan& plan, const Model& model, const QuantizeRequest& request) {
  std::vector<std::string> notes{about_default(model, request),
                                 about_experts_left_out(plan, request),
                                 about_mixed_experts(plan, request),
                                 about_routers(plan),
                                 plan.layout == nullptr ? "" : plan.layout->readers_note(model.family_name),
                                 about_exact_casts(plan, model, request),
                                 about_act_order(plan),
                                 about_unknown(plan, model),
                                 about_large_shards(plan, request)};
  std::erase(notes, "");
  return notes;
}

}  // namespace nibble
