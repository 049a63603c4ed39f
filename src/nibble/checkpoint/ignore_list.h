// Lists of modules that a configuration calls unquantized, as the field writes them: whole names, `re:` regular
// expressions matched from the start of a name (compressed-tensors), shell wildcards and prefixes of names (the
// others).
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

  // The entry that covers `module` ("" if none). Linear in the number of entries with wildcards; whole names are looked
  // up.
  std::string_view covering(std::string_view module) const;
  // Looser: also where an entry is a part of the name ("gate" and "lm_head" in lists that mean substrings).
  bool may_cover(std::string_view module) const;
  // Entries that are no valid regular expression.
  const std::vector<std::string>& invalid() const { return invalid_; }
  uint64_t pattern_count() const;

 private:
  struct Patterns;
  std::vector<std::string> entries_, invalid_;
  bool containers_;
  std::unique_ptr<Patterns> patterns_;
};

}  // namespace nibble
