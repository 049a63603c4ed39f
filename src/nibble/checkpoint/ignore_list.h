// Lists of modules in a configuration, as the field writes them: whole names, `re:` regular expressions matched from
// the start of a name (compressed-tensors), shell wildcards and prefixes of names (the others). Most such lists name
// what stays unquantized.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace nibble {

class IgnoreList {
 public:
  // `containers`: an entry also covers the modules below it ("model.layers.3.self_attn"). Not so in compressed-tensors.
  IgnoreList(const std::vector<std::string>& entries, bool containers);
  ~IgnoreList();
  IgnoreList(IgnoreList&&) noexcept;

  // The entry that covers `module` ("" if none). Whole names are looked up, and of the wildcards only those are tried
  // that begin as the name does.
  std::string_view covering(std::string_view module) const;
  // Also where an entry is one component of the name, or its last ones ("gate", "experts.*", "mlp.gate" in lists that
  // mean such a module of every layer).
  std::string_view covering_part(std::string_view module) const;
  // Looser: also where an entry is any part of the name.
  bool may_cover(std::string_view module) const;
  // Entries that are no valid regular expression.
  const std::vector<std::string>& invalid() const { return invalid_; }
  uint64_t pattern_count() const;
  // The steps that covering() takes at most for each byte of a name, expressions and wildcards together. Lists of
  // releases stay below a few hundred; hostile ones do not.
  uint64_t cost() const { return cost_; }

 private:
  struct Patterns;
  void add_wildcards();
  size_t first_wildcard(std::string_view module) const;
  bool has_part(std::string_view part, std::string_view* found) const;

  std::vector<std::string> entries_, invalid_;
  bool containers_;
  uint64_t cost_ = 0;
  std::unique_ptr<Patterns> patterns_;
};

}  // namespace nibble
