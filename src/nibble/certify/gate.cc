#include "nibble/certify/gate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "nibble/base/error.h"
#include "nibble/base/strings.h"

namespace nibble {
namespace {

GateBound parse_bound(std::string_view word, const std::vector<std::string>& names) {
  const auto refuse = [&](const char* what) {
    const std::string all = fmt::format("{}", fmt::join(names, " "));
    return Error(what).value("bound", std::string(word)).way_out("NAME<=NUMBER or NAME>=NUMBER, of: " + all);
  };
  const size_t sign = word.find_first_of("<>");
  if (sign == std::string_view::npos || word.substr(sign + 1, 1) != "=") throw refuse("a bound has no <= or >=");
  GateBound bound;
  bound.name = std::string(word.substr(0, sign));
  bound.at_most = word[sign] == '<';
  if (std::find(names.begin(), names.end(), bound.name) == names.end()) {
    Error error = refuse("a bound is on something that a certificate does not have");
    const std::string nearest = nearest_name(bound.name, names);
    if (!nearest.empty()) error.value("nearest", nearest);
    throw error;
  }
  const std::string_view number = word.substr(sign + 2);
  const auto [rest, code] = std::from_chars(number.data(), number.data() + number.size(), bound.bound);
  if (number.empty() || code != std::errc() || rest != number.data() + number.size() || !std::isfinite(bound.bound)) {
    throw refuse("a bound is no number");
  }
  return bound;
}

}  // namespace

std::vector<GateBound> parse_gate(std::string_view text, const std::vector<std::string>& names) {
  std::vector<GateBound> bounds;
  for (const std::string_view word : split(text, ',')) bounds.push_back(parse_bound(word, names));
  return bounds;
}

std::vector<std::string> failed_bounds(const std::vector<GateBound>& bounds,
                                       const std::function<std::optional<double>(std::string_view)>& value) {
  std::vector<std::string> failed;
  for (const GateBound& one : bounds) {
    const std::optional<double> found = value(one.name);
    const bool holds = found && (one.at_most ? *found <= one.bound : *found >= one.bound);
    if (holds) continue;
    failed.push_back(fmt::format("{} is {}, not {} {}", one.name, found ? fmt::format("{}", *found) : "not there",
                                 one.at_most ? "<=" : ">=", one.bound));
  }
  return failed;
}

}  // namespace nibble
