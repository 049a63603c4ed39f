#include "nibble/plan/legality.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <tuple>

namespace nibble {
namespace {

std::string list(const std::vector<uint64_t>& numbers) { return fmt::format("{}", fmt::join(numbers, ", ")); }

std::string number(uint64_t value) { return std::to_string(value); }

// "TP 1, 5": parts that come out whole.
std::string legal_way(const char* what, uint64_t width, uint64_t block) {
  return fmt::format("{} {}", what, list(legal_parts(width, block)));
}

LayoutRefusal indivisible(const char* what, uint64_t count, const char* option, uint64_t parts) {
  return {fmt::format("{} {} cannot be divided by {} {}: remainder {}", count, what, option, parts, count % parts),
          {{"count", number(count)}, {"parts", number(parts)}, {"remainder", number(count % parts)}},
          {legal_way(option, count, 1)}};
}

}  // namespace

LayoutRules::LayoutRules(const ModelSpec& spec, const WeightGroups& weights)
    : layers_(spec.layers.size()), experts_(spec.experts) {
  std::set<std::pair<std::string, uint64_t>> heads;
  std::set<uint64_t> kv_heads;
  for (const LayerSpec& layer : spec.layers) {
    if (layer.attention == AttentionKind::kLinear) {
      heads.insert({"heads of linear attention", spec.linear.heads});
      // A single one is copied; of several every GPU needs those of its own heads.
      if (spec.linear.key_heads > 1) heads.insert({"key heads of linear attention", spec.linear.key_heads});
    } else if (layer.attention != AttentionKind::kNone) {
      const AttentionShape shape = spec.attention_shape(layer);
      heads.insert({"attention heads", shape.heads});
      if (layer.attention == AttentionKind::kGqa) kv_heads.insert(shape.kv_heads);
    }
  }
  heads_.assign(heads.begin(), heads.end());
  kv_heads_.assign(kv_heads.begin(), kv_heads.end());
  std::set<std::tuple<Role, CutAxis, uint64_t, uint64_t, uint64_t>> seen;
  for (const WeightGroup& group : weights.groups()) {
    const WeightItem& item = group.item;
    // Vocabularies are padded by every engine.
    if (item.param.role == Role::kEmbedding || item.param.role == Role::kHead) continue;
    if (item.param.shape.size() < 2 || item.param.role == Role::kBias) continue;
    for (const Cut& cut : cuts_of(group, Layout{})) {
      uint64_t block = cut.axis == CutAxis::kRows ? item.format.block_rows : item.format.block_cols;
      if (item.format.is_dense() || block == 0) block = 1;
      // Gates and the like are cut head by head, and heads are asked for already.
      if (item.param.projection == Projection::kHeads && block == 1) continue;
      if (!seen.insert({item.param.role, cut.axis, cut.width, block, cut.kv_heads}).second) continue;
      axes_.push_back({item.param.role, cut.axis, cut.width, block, cut.kv_heads, item.is_stack(), item.format.name});
    }
  }
}

void LayoutRules::check_counts(const Layout& layout, std::vector<LayoutRefusal>* out) const {
  if (layout.pp > layers_)
    out->push_back({fmt::format("{} layers cannot fill PP {} stages", layers_, layout.pp),
                    {{"layers", number(layers_)}, {"pp", number(layout.pp)}},
                    {fmt::format("PP 1 to {}", layers_)}});
  for (const auto& [what, count] : heads_) {
    if (count != 0 && count % layout.tp != 0) out->push_back(indivisible(what.c_str(), count, "TP", layout.tp));
  }
  for (const uint64_t count : kv_heads_) {
    if (count % layout.tp != 0 && layout.tp % count != 0)
      out->push_back(indivisible("key/value heads", count, "TP", layout.tp));
  }
  if (layout.ep == 1) return;
  if (experts_ == 0) {
    out->push_back({"the model has no experts to deal out", {{"ep", number(layout.ep)}}, {"EP 1"}});
  } else if (experts_ % layout.ep != 0) {
    out->push_back(indivisible("experts", experts_, "EP", layout.ep));
    out->back().ways_out.push_back(
        fmt::format("pad to {} experts with empty ones", (experts_ / layout.ep + 1) * layout.ep));
  }
  if (layout.stage_gpus() % layout.ep != 0)
    out->push_back({fmt::format("EP {} does not divide the {} GPUs of a stage (TP {} x DP {})", layout.ep,
                                layout.stage_gpus(), layout.tp, layout.dp),
                    {{"ep", number(layout.ep)}, {"stage_gpus", number(layout.stage_gpus())}},
                    {legal_way("EP", layout.stage_gpus(), 1)}});
}

// Numbers of parts that leave blocks and heads whole.
std::vector<uint64_t> LayoutRules::legal_tp(const Axis& axis) const {
  std::vector<uint64_t> legal = legal_parts(axis.width, axis.block);
  std::erase_if(legal, [&](uint64_t tp) {
    const bool heads =
        std::all_of(heads_.begin(), heads_.end(), [&](const auto& kind) { return kind.second % tp == 0; });
    const bool keys = std::all_of(kv_heads_.begin(), kv_heads_.end(),
                                  [&](uint64_t count) { return count == 0 || count % tp == 0 || tp % count == 0; });
    return !heads || !keys;
  });
  return legal;
}

std::vector<std::string> LayoutRules::ways_out(const Axis& axis, uint64_t parts) const {
  std::vector<std::string> ways;
  if (axis.expert) {
    // TP without EP cuts the heads too: numbers that only the blocks allow are named as such.
    const std::vector<uint64_t> whole_blocks = legal_parts(axis.width, axis.block), legal = legal_tp(axis);
    ways.push_back(
        fmt::format("parts of an expert (TP without EP): {}{}", list(whole_blocks),
                    legal == whole_blocks ? "" : fmt::format("; the heads allow TP {} of these", list(legal))));
    ways.push_back(legal_way("whole experts by expert parallelism: EP", experts_, 1));
  } else {
    ways.push_back(fmt::format("TP {}", list(legal_tp(axis))));
  }
  if (axis.block > 1 && axis.width % axis.block == 0 && axis.width >= parts * axis.block) {
    const uint64_t blocks = axis.width / axis.block;
    ways.push_back(fmt::format("uneven parts of whole blocks: {} or {} of {} blocks a GPU", blocks / parts,
                               blocks / parts + 1, blocks));
  }
  const uint64_t step = parts * axis.block;
  ways.push_back(fmt::format("pad {} to {} with zero codes and scales of their own", axis.width,
                             (axis.width + step - 1) / step * step));
  return ways;
}

void LayoutRules::check_axis(const Axis& axis, const Layout& layout, std::vector<LayoutRefusal>* out) const {
  const uint64_t parts = axis.expert          ? layout.expert_parts()
                         : axis.kv_heads != 0 ? key_value_parts(axis.kv_heads, layout.tp)
                                              : layout.tp;
  if (parts <= 1) return;
  const uint64_t local = axis.width / parts;
  const bool whole = axis.width % parts == 0;
  if (whole && local % axis.block == 0) return;
  const char* what = axis.axis == CutAxis::kRows ? "outputs" : "inputs";
  LayoutRefusal refusal;
  refusal.reason = whole ? fmt::format("{}: {} {} over {} GPUs are {} each, {} blocks of {} ({}): remainder {}",
                                       role_name(axis.role), axis.width, what, parts, local,
                                       static_cast<double>(local) / static_cast<double>(axis.block), axis.block,
                                       axis.format, local % axis.block)
                         : fmt::format("{}: {} {} cannot be divided by {}: remainder {}", role_name(axis.role),
                                       axis.width, what, parts, axis.width % parts);
  refusal.values = {{"width", number(axis.width)},
                    {"parts", number(parts)},
                    {"local", number(local)},
                    {"block", number(axis.block)},
                    {"remainder", number(whole ? local % axis.block : axis.width % parts)}};
  refusal.ways_out = ways_out(axis, parts);
  out->push_back(std::move(refusal));
}

std::vector<LayoutRefusal> LayoutRules::check(const Layout& layout, bool first_only) const {
  std::vector<LayoutRefusal> refusals;
  check_counts(layout, &refusals);
  for (const Axis& axis : axes_) {
    if (first_only && !refusals.empty()) break;
    // Parts of experts are only defined where EP divides the stage.
    if (axis.expert && layout.ep > 1 && layout.stage_gpus() % layout.ep != 0) continue;
    check_axis(axis, layout, &refusals);
  }
  return refusals;
}

}  // namespace nibble
