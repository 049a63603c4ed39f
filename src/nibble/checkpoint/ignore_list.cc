#include "nibble/checkpoint/ignore_list.h"

#include <re2/re2.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "nibble/base/strings.h"

namespace nibble {
namespace {

constexpr std::string_view kSpecial = "*?[";

// What a wildcard begins with before its first special character.
std::string_view head_of(std::string_view wildcard) { return wildcard.substr(0, wildcard.find_first_of(kSpecial)); }

}  // namespace

struct IgnoreList::Patterns {
  struct Wildcard {
    std::string_view entry;
    std::string below;  // the same for what is below it; "" if the entry itself covers that
  };
  std::unordered_set<std::string_view> names;
  std::unordered_map<std::string_view, std::string_view> parts;  // single components, and the entry that means them
  std::vector<std::pair<std::unique_ptr<re2::RE2>, std::string_view>> expressions;
  std::vector<Wildcard> wildcards;
  std::unordered_map<std::string_view, std::vector<size_t>> by_head;  // of wildcards, ascending
  std::vector<size_t> head_lengths;
};

IgnoreList::IgnoreList(const std::vector<std::string>& entries, bool containers)
    : entries_(entries), containers_(containers), patterns_(std::make_unique<Patterns>()) {
  re2::RE2::Options options(re2::RE2::Quiet);
  options.set_max_mem(1 << 20);
  for (const std::string& entry : entries_) {
    if (starts_with(entry, "re:")) {
      auto expression = std::make_unique<re2::RE2>(entry.substr(3), options);
      if (expression->ok()) {
        cost_ += static_cast<uint64_t>(expression->ProgramSize());
        patterns_->expressions.emplace_back(std::move(expression), entry);
      } else {
        invalid_.push_back(entry);
      }
    } else if (entry.find_first_of(kSpecial) != std::string::npos) {
      patterns_->wildcards.push_back({entry, containers && !entry.ends_with('*') ? entry + ".*" : std::string()});
    } else if (!entry.empty()) {
      patterns_->names.insert(entry);
    }
    const std::string_view part = without_suffix(entry, ".*");
    if (!part.empty() && part.find_first_of("*?[.:") == std::string_view::npos) patterns_->parts.emplace(part, entry);
  }
  add_wildcards();
}

// Lists name the layers one by one: hundreds of wildcards with a head of their own, of which a name has one.
void IgnoreList::add_wildcards() {
  std::map<size_t, uint64_t> longest;  // by the length of the head
  std::unordered_map<std::string_view, uint64_t> sizes;
  for (size_t i = 0; i < patterns_->wildcards.size(); ++i) {
    const std::string_view entry = patterns_->wildcards[i].entry;
    const std::string_view head = head_of(entry);
    patterns_->by_head[head].push_back(i);
    const uint64_t size = sizes[head] += entry.size();
    longest[head.size()] = std::max(longest[head.size()], size);
  }
  for (const auto& [length, size] : longest) {
    patterns_->head_lengths.push_back(length);
    cost_ += size;
  }
}

IgnoreList::~IgnoreList() = default;
IgnoreList::IgnoreList(IgnoreList&&) noexcept = default;

// The first in the list's order that covers the name; the number of them if none does.
size_t IgnoreList::first_wildcard(std::string_view module) const {
  size_t first = patterns_->wildcards.size();
  for (const size_t length : patterns_->head_lengths) {
    if (length > module.size()) break;
    const auto found = patterns_->by_head.find(module.substr(0, length));
    if (found == patterns_->by_head.end()) continue;
    for (const size_t i : found->second) {
      if (i >= first) break;
      const Patterns::Wildcard& wildcard = patterns_->wildcards[i];
      if (glob_match(wildcard.entry, module) || (!wildcard.below.empty() && glob_match(wildcard.below, module)))
        first = i;
    }
  }
  return first;
}

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
  const size_t wildcard = first_wildcard(module);
  return wildcard < patterns_->wildcards.size() ? patterns_->wildcards[wildcard].entry : std::string_view();
}

bool IgnoreList::has_part(std::string_view part, std::string_view* found) const {
  const auto at = patterns_->parts.find(part);
  if (at == patterns_->parts.end()) return false;
  *found = at->second;
  return true;
}

std::string_view IgnoreList::covering_part(std::string_view module) const {
  if (const std::string_view entry = covering(module); !entry.empty()) return entry;
  std::string_view found;
  for (size_t at = 0;;) {
    const size_t dot = module.find('.', at);
    if (has_part(module.substr(at, dot - at), &found)) return found;
    if (dot == std::string_view::npos) return {};
    at = dot + 1;
    if (const auto name = patterns_->names.find(module.substr(at)); name != patterns_->names.end()) return *name;
  }
}

bool IgnoreList::may_cover(std::string_view module) const {
  if (!covering(module).empty()) return true;
  return std::any_of(patterns_->names.begin(), patterns_->names.end(),
                     [&](std::string_view name) { return module.find(name) != std::string_view::npos; });
}

uint64_t IgnoreList::pattern_count() const { return entries_.size(); }

}  // namespace nibble
