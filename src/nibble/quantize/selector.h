// The words of --include and --keep: a role, all_linears, or name:GLOB over whole names.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "nibble/models/model.h"

namespace nibble {

struct Selector {
  std::string text;
  std::set<Role> roles;
  bool linears_only = false;
  std::string glob;
  // What has been asked so far, so that a word without an effect can be refused.
  mutable bool matched = false;    // some weight
  mutable bool effective = false;  // some weight that can be quantized
  mutable std::string never;       // why the first of the others cannot

  // `never_quantized`: why this weight can never be quantized; "" if it can.
  bool matches(const Weight& weight, const ParamSpec& param, std::string_view never_quantized) const;
};

// Error, with the roles and the nearest one, if `text` is none of the three.
Selector parse_selector(const std::string& text);
std::vector<Selector> parse_selectors(const std::vector<std::string>& texts);

// The first that matches. All are asked, not only up to the first hit: each must know whether it ever matched.
const Selector* first_match(const std::vector<Selector>& selectors, const Weight& weight, const ParamSpec& param,
                            std::string_view never_quantized);

// Errors once every weight has been asked. `option` is what the user wrote before the word.
void refuse_unmatched(const std::vector<Selector>& selectors, std::string_view option);
void refuse_ineffective(const std::vector<Selector>& selectors, std::string_view option);

}  // namespace nibble
