// Matrices that engines run as one group must have one format: all experts of a layer (gate and up together, down), and
// q, k and v. A list that excludes some experts of a layer gives a checkpoint that no fused kernel can load.
#include <fmt/format.h>

#include <map>
#include <set>
#include <tuple>

#include "nibble/verify/rule_helpers.h"

namespace nibble {
namespace {

constexpr std::string_view kName = "mixed-formats";

struct Group {
  std::map<std::string, std::set<int64_t>> members;  // format -> experts (or weights, for attention)
  size_t first = 0;
};

// "0-99, 104": runs, at most a few.
std::string runs_text(const std::set<int64_t>& numbers) {
  std::string text;
  int shown = 0;
  for (auto it = numbers.begin(); it != numbers.end();) {
    const int64_t begin = *it;
    int64_t end = begin;
    for (++it; it != numbers.end() && *it == end + 1; ++it) end = *it;
    if (++shown > 4) return text + ", …";
    text += fmt::format("{}{}", text.empty() ? "" : ", ",
                        begin == end ? std::to_string(begin) : fmt::format("{}-{}", begin, end));
  }
  return text;
}

Finding group_finding(const VerifyContext& context, const Group& group, int32_t layer, std::string_view what,
                      Severity severity) {
  std::string counts;
  FindingValues values = {{"layer", std::to_string(layer)}};
  for (const auto& [format, members] : group.members) {
    counts += fmt::format("{}{} {} {} {}", counts.empty() ? "" : ", ", members.size(), what,
                          members.size() == 1 ? "is" : "are", format);
    if (what == "experts") counts += fmt::format(" ({})", runs_text(members));
    values.emplace_back(format, std::to_string(members.size()));
  }
  return weight_finding(
      context, group.first, severity, kName,
      fmt::format("layer {} mixes formats in one group: {}. Quantize all of them or none: kernels run "
                  "the group as one",
                  layer, counts),
      std::move(values));
}

void check_experts(const VerifyContext& context, Findings* findings) {
  const auto& weights = context.model->table.weights();
  std::map<std::pair<int32_t, bool>, Group> groups;  // (layer, is down)
  for (size_t w = 0; w < weights.size(); ++w) {
    const ParamSpec& param = context.model->params[w];
    if (param.role != Role::kRoutedExpert || param.expert < 0 || weights[w].shape.size() < 2) continue;
    Group& group = groups[{param.layer, param.projection == Projection::kDown}];
    if (group.members.empty()) group.first = w;
    group.members[weights[w].format.name].insert(param.expert);
  }
  std::set<int32_t> told;  // usually gate, up and down are mixed alike: one line a layer
  for (const auto& [key, group] : groups) {
    if (group.members.size() > 1 && told.insert(key.first).second)
      findings->push_back(group_finding(context, group, key.first, "experts", Severity::kError));
  }
}

void check_attention(const VerifyContext& context, Findings* findings) {
  if (context.checkpoint->container() == Container::kGguf) return;  // its engines do not fuse them
  const auto& weights = context.model->table.weights();
  std::map<int32_t, Group> groups;
  for (size_t w = 0; w < weights.size(); ++w) {
    const ParamSpec& param = context.model->params[w];
    const bool qkv =
        param.projection == Projection::kQ || param.projection == Projection::kK || param.projection == Projection::kV;
    if (param.role != Role::kAttention || !qkv || weights[w].shape.size() != 2) continue;
    Group& group = groups[param.layer];
    if (group.members.empty()) group.first = w;
    group.members[weights[w].format.name].insert(static_cast<int64_t>(w));
  }
  for (const auto& [layer, group] : groups) {
    if (group.members.size() > 1)
      findings->push_back(group_finding(context, group, layer, "of q, k and v", Severity::kWarning));
  }
}

void check(const VerifyContext& context, Findings* findings) {
  check_experts(context, findings);
  check_attention(context, findings);
}

}  // namespace

extern const Rule kMixedFormats = {kName, "several formats among the experts of a layer (q, k and v: warning)", check};

}  // namespace nibble
