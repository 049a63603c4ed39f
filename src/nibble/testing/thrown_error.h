// The Error that a call throws, for tests that look at more than its text. A call that throws none gives an Error that
// says so, which no test's expectations match.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nibble/base/error.h"
#include "nibble/base/finding.h"

namespace nibble::testing {

template <typename Call>
Error thrown_error(Call&& call) {
  try {
    std::forward<Call>(call)();
  } catch (const Error& error) {
    return error;
  }
  return Error("(nothing was thrown)");
}

// The text of `key` in an Error or a Finding, or "(absent)".
inline std::string value_of(const std::vector<std::pair<std::string, std::string>>& values, std::string_view key) {
  for (const auto& [name, text] : values) {
    if (name == key) return text;
  }
  return "(absent)";
}
inline std::string value_of(const Error& error, std::string_view key) { return value_of(error.values(), key); }
inline std::string value_of(const Finding& finding, std::string_view key) { return value_of(finding.values, key); }

}  // namespace nibble::testing
