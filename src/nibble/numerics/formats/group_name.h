// Names with numbers in them: "int4-g32", "int4-g32-asym", "fp8-block64x128".
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace nibble {

// A decimal number of 1..2^31 without sign or leading zeros; nullopt for anything else.
constexpr std::optional<uint64_t> parse_block_size(std::string_view digits) {
  if (digits.empty() || digits.size() > 10 || digits.front() == '0') return std::nullopt;
  uint64_t number = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') return std::nullopt;
    number = number * 10 + static_cast<uint64_t>(c - '0');
  }
  if (number > (uint64_t{1} << 31)) return std::nullopt;
  return number;
}

// The N of PREFIX N SUFFIX.
constexpr std::optional<uint64_t> parse_group_name(std::string_view name, std::string_view prefix,
                                                   std::string_view suffix) {
  if (name.size() <= prefix.size() + suffix.size() || !name.starts_with(prefix) || !name.ends_with(suffix)) {
    return std::nullopt;
  }
  return parse_block_size(name.substr(prefix.size(), name.size() - prefix.size() - suffix.size()));
}

}  // namespace nibble
