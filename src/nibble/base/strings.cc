#include "nibble/base/strings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <numeric>
#include <utility>

#include "nibble/base/error.h"

namespace nibble {
namespace {

// Bytes of the class that begins at pattern[at], brackets included; 0 if it is not closed.
size_t class_length(std::string_view pattern, size_t at) {
  size_t first = at + 1;
  if (first < pattern.size() && pattern[first] == '!') ++first;
  const size_t close = first + 1 < pattern.size() ? pattern.find(']', first + 1) : std::string_view::npos;
  return close == std::string_view::npos ? 0 : close + 1 - at;
}

// `members` is what stands between the brackets, without the `!`.
bool in_class(std::string_view members, char c) {
  const auto byte = [](char x) { return static_cast<unsigned char>(x); };
  for (size_t i = 0; i < members.size(); ++i) {
    if (i + 2 < members.size() && members[i + 1] == '-') {
      if (byte(members[i]) <= byte(c) && byte(c) <= byte(members[i + 2])) return true;
      i += 2;
    } else if (members[i] == c) {
      return true;
    }
  }
  return false;
}

// Bytes of the element of the pattern at `at` if it matches `c`, else 0.
size_t match_one(std::string_view pattern, size_t at, char c) {
  const size_t length = pattern[at] == '[' ? class_length(pattern, at) : 0;
  if (length == 0) return pattern[at] == '?' || pattern[at] == c ? 1 : 0;
  std::string_view members = pattern.substr(at + 1, length - 2);
  const bool negated = members.front() == '!';
  if (negated) members.remove_prefix(1);
  return in_class(members, c) != negated ? length : 0;
}

}  // namespace

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t at = 0;;) {
    const size_t end = text.find(separator, at);
    parts.push_back(text.substr(at, end - at));
    if (end == std::string_view::npos) return parts;
    at = end + 1;
  }
}

bool starts_with(std::string_view text, std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; }

bool ends_with(std::string_view text, std::string_view suffix) {
  return text.size() >= suffix.size() && text.substr(text.size() - suffix.size()) == suffix;
}

std::string_view without_suffix(std::string_view text, std::string_view suffix) {
  return ends_with(text, suffix) ? text.substr(0, text.size() - suffix.size()) : text;
}

bool glob_match(std::string_view pattern, std::string_view name) {
  size_t p = 0;
  size_t n = 0;
  size_t star = std::string_view::npos;  // where to come back to: the last `*` and how much it has eaten
  size_t eaten = 0;
  while (n < name.size()) {
    const bool at_star = p < pattern.size() && pattern[p] == '*';
    const size_t matched = at_star || p == pattern.size() ? 0 : match_one(pattern, p, name[n]);
    if (at_star) {
      star = p++;
      eaten = n;
    } else if (matched > 0) {
      p += matched;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++eaten;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

std::string nearest_name(std::string_view name, std::span<const std::string> candidates) {
  std::string best;
  size_t best_distance = SIZE_MAX;
  for (const auto& candidate : candidates) {
    const size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  // Half of the letters in common, or it is another word.
  return 2 * best_distance <= std::max(name.size(), best.size()) ? best : "";
}

std::string human_bytes(uint64_t bytes) {
  constexpr std::array kUnits{"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  // 999.5 would print as "1000": go on to the next unit there.
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  if (unit == 0) return fmt::format("{} B", bytes);
  return fmt::format("{:.{}f} {}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0, kUnits[unit]);
}

uint64_t parse_bytes(std::string_view text) {
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"", 1},         {"B", 1},   {"K", 1e3},  {"KB", 1e3},     {"KIB", 0x1p10}, {"M", 1e6},   {"MB", 1e6},
      {"MIB", 0x1p20}, {"G", 1e9}, {"GB", 1e9}, {"GIB", 0x1p30}, {"T", 1e12},     {"TB", 1e12}, {"TIB", 0x1p40}};
  double number = 0;
  const auto [rest, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string unit(rest, text.data() + text.size());
  unit.erase(std::remove(unit.begin(), unit.end(), ' '), unit.end());
  for (char& c : unit) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  for (const auto& [name, factor] : kUnits) {
    const double bytes = number * factor;
    if (code != std::errc() || name != unit || !(bytes >= 0.5) || bytes >= 0x1p63) continue;  // a NaN fails the first
    return static_cast<uint64_t>(std::llround(bytes));
  }
  throw Error("not a size").value("text", std::string(text)).way_out("write it like 5GB or 512MiB");
}

std::string with_commas(uint64_t number) {
  std::string text = std::to_string(number);
  for (size_t at = text.size(); at > 3;) {
    at -= 3;
    text.insert(at, ",");
  }
  return text;
}

}  // namespace nibble
