#include "nibble/numerics/scale_rule.h"

#include <algorithm>
#include <vector>

#include "nibble/base/error.h"
#include "nibble/base/strings.h"

namespace nibble {
namespace {

constexpr std::string_view kSearchPrefix = "mse.";

// "int4.amax7_5, int4.amax7": the rules for `format`, those spelled most like `name` first.
std::string rules_nearest_first(std::string_view name, const Format& format) {
  std::vector<std::string_view> names;
  for (const ScaleRule* rule : scale_rules()) {
    if (rule->applies(format)) names.push_back(rule->name);
  }
  std::ranges::stable_sort(names, {}, [&](std::string_view candidate) { return edit_distance(candidate, name); });
  std::string list;
  for (const std::string_view candidate : names) {
    if (!list.empty()) list += ", ";
    list += candidate;
  }
  return list;
}

Error rule_error(const char* message, std::string_view name, const Format& format) {
  Error error(message);
  error.value("rule", std::string(name)).value("format", format.name);
  const std::string names = rules_nearest_first(name, format);
  if (names.empty()) {
    error.way_out("leave the rule out: this format has none");
  } else {
    error.way_out("use one of: " + names + ", each also as mse.NAME");
  }
  return error;
}

}  // namespace

std::string NamedRule::name() const {
  if (rule == nullptr) return "";
  return (mse ? std::string(kSearchPrefix) : std::string()) + std::string(rule->name);
}

NamedRule parse_rule(std::string_view name, const Format& format) {
  const bool mse = starts_with(name, kSearchPrefix);
  const std::string_view plain = mse ? name.substr(kSearchPrefix.size()) : name;
  for (const ScaleRule* rule : scale_rules()) {
    if (rule->name != plain) continue;
    if (!rule->applies(format)) throw rule_error("this scale rule does not apply to the format", name, format);
    return {rule, mse};
  }
  throw rule_error("no scale rule has this name", name, format);
}

NamedRule default_rule(const Format& format) {
  const std::string_view name = family_of(format).default_rule;
  return name.empty() ? NamedRule{} : parse_rule(name, format);
}

}  // namespace nibble
