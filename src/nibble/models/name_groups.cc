#include "nibble/models/name_groups.h"

#include <algorithm>

#include "nibble/base/strings.h"

namespace nibble {
namespace {

constexpr size_t kMaxCandidates = 200, kMaxCompared = 160;

bool is_number(std::string_view part) {
  return !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
}

// `pattern` with its "#" replaced by the numbers of `name`; "" if they are not equally many.
std::string with_numbers_of(std::string_view pattern, std::string_view name) {
  std::vector<std::string_view> numbers;
  for (const std::string_view part : split(name, '.')) {
    if (is_number(part)) numbers.push_back(part);
  }
  std::string result;
  size_t used = 0;
  for (const std::string_view part : split(pattern, '.')) {
    if (!result.empty()) result += '.';
    if (part != "#") {
      result.append(part);
    } else if (used == numbers.size()) {
      return "";
    } else {
      result.append(numbers[used++]);
    }
  }
  return used == numbers.size() ? result : "";
}

}  // namespace

std::string name_pattern(std::string_view name) {
  std::string pattern;
  pattern.reserve(name.size());
  for (size_t at = 0;;) {
    const size_t end = std::min(name.find('.', at), name.size());
    const std::string_view part = name.substr(at, end - at);
    pattern.append(is_number(part) ? std::string_view("#") : part);
    if (end == name.size()) return pattern;
    pattern += '.';
    at = end + 1;
  }
}

bool NameGroups::add(std::string_view name, uint64_t tag) {
  ++total_;
  std::string pattern = name_pattern(name);
  if (const auto it = by_pattern_.find(pattern); it != by_pattern_.end()) {
    ++groups_[it->second].count;
    return false;
  }
  if (groups_.size() == kMaxGroups) {
    ++ungrouped_;
    return false;
  }
  by_pattern_.emplace(pattern, groups_.size());
  groups_.push_back({std::move(pattern), std::string(name), 1, tag});
  return true;
}

std::string nearest_parameter(const NameGroup& group, const std::vector<NameGroup>& candidates) {
  const NameGroup* best = nullptr;
  size_t best_distance = SIZE_MAX;
  const std::string_view wanted = std::string_view(group.pattern).substr(0, kMaxCompared);
  for (size_t i = 0; i < std::min(candidates.size(), kMaxCandidates); ++i) {
    const size_t distance = edit_distance(wanted, std::string_view(candidates[i].pattern).substr(0, kMaxCompared));
    if (distance >= best_distance) continue;
    best_distance = distance;
    best = &candidates[i];
  }
  if (best == nullptr) return "";
  const std::string named = with_numbers_of(best->pattern, group.first);
  return named.empty() ? best->first : named;
}

}  // namespace nibble
