#include "nibble/quantize/selector.h"

#include <fmt/format.h>

#include "nibble/base/error.h"
#include "nibble/base/strings.h"

namespace nibble {
namespace {

constexpr std::string_view kNamePrefix = "name:";
constexpr std::string_view kAllLinears = "all_linears";

}  // namespace

bool Selector::matches(const Weight& weight, const ParamSpec& param, std::string_view never_quantized) const {
  // A name as it stands too: one that holds brackets would have to be escaped otherwise.
  const bool by_name =
      glob == weight.name || glob_match(glob, weight.name) || glob_match(glob, without_suffix(weight.name, ".weight"));
  const bool by_role = roles.contains(param.role) && (!linears_only || weight.shape.size() >= 2);
  const bool hit = glob.empty() ? by_role : by_name;
  if (!hit) return false;
  matched = true;
  if (never_quantized.empty()) effective = true;
  if (never.empty()) never = never_quantized;
  return true;
}

Selector parse_selector(const std::string& text) {
  Selector selector;
  selector.text = text;
  if (starts_with(text, kNamePrefix)) {
    selector.glob = text.substr(kNamePrefix.size());
    if (selector.glob.empty()) throw Error("an empty name pattern").value("pattern", text).way_out("write name:GLOB");
    return selector;
  }
  if (text == kAllLinears) {
    selector.roles = {Role::kRoutedExpert, Role::kSharedExpert, Role::kDenseMlp, Role::kAttention};
    selector.linears_only = true;
    return selector;
  }
  if (const auto role = parse_role(text)) {
    selector.roles = {*role};
    return selector;
  }
  std::vector<std::string> names{std::string(kAllLinears)};
  for (const Role role : all_roles()) names.emplace_back(role_name(role));
  Error error("not a role, all_linears or name:GLOB");
  error.value("pattern", text);
  const std::string nearest = nearest_name(text, names);
  if (!nearest.empty()) error.way_out(fmt::format("did you mean {}?", nearest));
  throw std::move(error.way_out(fmt::format("use one of {}, or name:GLOB", fmt::join(names, " "))));
}

std::vector<Selector> parse_selectors(const std::vector<std::string>& texts) {
  std::vector<Selector> selectors;
  selectors.reserve(texts.size());
  for (const auto& text : texts) selectors.push_back(parse_selector(text));
  return selectors;
}

const Selector* first_match(const std::vector<Selector>& selectors, const Weight& weight, const ParamSpec& param,
                            std::string_view never_quantized) {
  const Selector* found = nullptr;
  for (const auto& selector : selectors) {
    if (selector.matches(weight, param, never_quantized) && found == nullptr) found = &selector;
  }
  return found;
}

void refuse_unmatched(const std::vector<Selector>& selectors, std::string_view option) {
  for (const auto& selector : selectors) {
    if (selector.matched) continue;
    throw Error(fmt::format("{} {} matches nothing in this checkpoint", option, selector.text))
        .value("pattern", selector.text)
        .way_out("`nibble inspect` lists the roles, `nibble quantize … --dry-run` the names")
        .way_out("leave it out");
  }
}

void refuse_ineffective(const std::vector<Selector>& selectors, std::string_view option) {
  for (const auto& selector : selectors) {
    if (!selector.matched || selector.effective) continue;
    throw Error(fmt::format("{} {} matches nothing that can be quantized", option, selector.text))
        .value("pattern", selector.text)
        .value("reason", selector.never)
        .way_out("leave it out: what it names is copied as it is")
        .way_out("name a role that has matrices, such as routed_expert or attention");
  }
}

}  // namespace nibble
