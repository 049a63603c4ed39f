// Reads pages and pictures back in tests.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace nibble::testing {

struct MarkupElement {
  std::string name;
  std::map<std::string, std::string> attributes;  // entities as they are written
  std::string text;                               // directly in it
  double number(const std::string& key) const { return std::stod(attributes.at(key)); }
};

// All elements in the order in which they begin. Throws std::runtime_error on what is not well-formed: tags that do not
// match, attributes without quotes or given twice, a bare & or <, an unknown entity, an id given twice.
std::vector<MarkupElement> parse_markup(std::string_view text);

// Those of a name whose class attribute contains the word.
std::vector<MarkupElement> with_class(const std::vector<MarkupElement>& elements, std::string_view name,
                                      std::string_view word);

}  // namespace nibble::testing
