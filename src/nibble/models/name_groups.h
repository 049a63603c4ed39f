// Names that differ in numbers only, as one group with a count: what findings about half a million tensors are made of.
// The memory is bounded, whatever names a file makes up: beyond kMaxGroups kinds only the number is kept.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace nibble {

struct NameGroup {
  std::string pattern;  // "model.layers.#.mlp.gate.weight"
  std::string first;    // the first name of this kind
  uint64_t count = 0;
  uint64_t tag = 0;  // what the caller gave with the first name
};

class NameGroups {
 public:
  static constexpr size_t kMaxGroups = 1000;

  // Returns true if `name` is the first of its kind.
  bool add(std::string_view name, uint64_t tag = 0);
  // In order of first appearance.
  const std::vector<NameGroup>& groups() const { return groups_; }
  uint64_t total() const { return total_; }
  bool empty() const { return total_ == 0; }
  // Names that found no place among the groups.
  uint64_t ungrouped() const { return ungrouped_; }

 private:
  std::vector<NameGroup> groups_;
  std::unordered_map<std::string, size_t> by_pattern_;
  uint64_t total_ = 0, ungrouped_ = 0;
};

// Whole components of digits become "#": "a.12.b3" -> "a.#.b3".
std::string name_pattern(std::string_view name);

// The candidates' name nearest to `group`'s first one, with that one's numbers where the kinds have equally many; "" if
// there are no candidates. Looks at a bounded number of candidates and characters.
std::string nearest_parameter(const NameGroup& group, const std::vector<NameGroup>& candidates);

}  // namespace nibble
