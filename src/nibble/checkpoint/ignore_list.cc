#include "nibble/checkpoint/ignore_list.h"

#include <re2/re2.h>

#include <algorithm>
#include <unordered_set>

#include "nibble/base/strings.h"

namespace nibble {

struct IgnoreList::Patterns {
  std::unordered_set<std::string_view> names;
  std::vector<std::pair<std::unique_ptr<re2::RE2>, std::string_view>> expressions;
  std::vector<std::string_view> wildcards;
};

IgnoreList::IgnoreList(const std::vector<std::string>& entries, bool containers)
    : entries_(entries), containers_(containers), patterns_(std::make_unique<Patterns>()) {
  re2::RE2::Options options(re2::RE2::Quiet);
  options.set_max_mem(1 << 20);
  for (const std::string& entry : entries_) {
    if (starts_with(entry, "re:")) {
      auto expression = std::make_unique<re2::RE2>(entry.substr(3), options);
      if (expression->ok()) {
        patterns_->expressions.emplace_back(std::move(expression), entry);
      } else {
        invalid_.push_back(entry);
      }
    } else if (entry.find_first_of("*?[") != std::string::npos) {
      patterns_->wildcards.emplace_back(entry);
    } else if (!entry.empty()) {
      patterns_->names.insert(entry);
    }
  }
}

IgnoreList::~IgnoreList() = default;

std::string_view IgnoreList::covering(std::string_view module) const {
  for (std::string_view name = module; !name.empty();) {
    if (const auto found = patterns_->names.find(name); found != patterns_->names.end()) return *found;
    const size_t dot = name.rfind('.');
    if (!containers_ || dot == std::string_view::npos) break;
    name = name.substr(0, dot);
  }
  for (const auto& [expression, entry] : patterns_->expressions) {
    if (expression->Match({module.data(), module.size()}, 0, module.size(), re2::RE2::ANCHOR_START, nullptr, 0))
      return entry;
  }
  for (const std::string_view wildcard : patterns_->wildcards) {
    if (glob_match(wildcard, module)) return wildcard;
    if (containers_ && glob_match(std::string(wildcard) + ".*", module)) return wildcard;
  }
  return {};
}

bool IgnoreList::may_cover(std::string_view module) const {
  if (!covering(module).empty()) return true;
  return std::any_of(patterns_->names.begin(), patterns_->names.end(),
                     [&](std::string_view name) { return module.find(name) != std::string_view::npos; });
}

uint64_t IgnoreList::pattern_count() const { return entries_.size(); }

}  // namespace nibble
