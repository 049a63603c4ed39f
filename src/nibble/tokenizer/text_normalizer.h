// Unicode normalization before a text is cut: forms of the standard, one after another, with the tables of Hugging
// Face's library.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nibble {

class TextNormalizer {
 public:
  // Adds NFC, NFD, NFKC or NFKD; false for another name.
  bool add(std::string_view name);
  bool changes_nothing() const { return forms_.empty(); }
  std::u16string apply(std::u16string text) const;
  std::string apply_utf8(const std::string& text) const;  // of text that is_utf8()

 private:
  std::vector<const void*> forms_;  // ICU's instances, which live as long as the program
};

}  // namespace nibble
