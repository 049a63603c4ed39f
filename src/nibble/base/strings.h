// Small text helpers shared by messages, patterns and reports.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nibble {

std::vector<std::string_view> split(std::string_view text, char separator);
bool starts_with(std::string_view text, std::string_view prefix);
bool ends_with(std::string_view text, std::string_view suffix);
// The text without its suffix, or as it is if it does not end so.
std::string_view without_suffix(std::string_view text, std::string_view suffix);

// Shell wildcards over a whole name: `*` any run (dots included), `?` one byte, `[abc]`, `[a-z]` one byte of a class,
// `[!abc]` one that is not in it, everything else itself, a `[` without its `]` too. `]` belongs to a class where it is
// its first byte. Time at most |pattern| · |name|.
bool glob_match(std::string_view pattern, std::string_view name);

// Levenshtein distance, and the candidate nearest to `name` (empty if none shares half of the
// letters): "did you mean …".
size_t edit_distance(std::string_view a, std::string_view b);
std::string nearest_name(std::string_view name, std::span<const std::string> candidates);

// "1.50 GB": decimal units, three significant digits.
std::string human_bytes(uint64_t bytes);
// "5 GB", "5GB", "512MiB", "1e9" … into bytes, at least 1 and below 2^63; Error on anything else.
uint64_t parse_bytes(std::string_view text);
// 1234567 -> "1,234,567".
std::string with_commas(uint64_t number);

}  // namespace nibble
