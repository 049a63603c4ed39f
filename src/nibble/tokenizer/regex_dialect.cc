#include "nibble/tokenizer/regex_dialect.h"

#include <fmt/format.h>

#include "nibble/base/error.h"
#include "nibble/checkpoint/json_scanner.h"

namespace nibble {
namespace {

// Escapes that ICU gives another meaning, or none: word boundaries, what is kept, named groups and the like.
constexpr std::string_view kForeignEscapes = "bBgGkKNORXyY";

// Letters, marks, digits and connectors; ICU's own \w adds the two joiners.
constexpr std::string_view kWord = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";
constexpr std::string_view kHexDigit = "0-9a-fA-F";

class Translation {
 public:
  Translation(std::string_view pattern, const std::string& file) : pattern_(pattern), file_(file) {}

  std::string run() {
    while (at_ < pattern_.size()) step();
    return std::move(out_);
  }

 private:
  bool next_is(std::string_view text, size_t ahead = 0) const {
    return pattern_.substr(std::min(pattern_.size(), at_ + ahead)).starts_with(text);
  }

  void take(size_t bytes) {
    out_ += pattern_.substr(at_, bytes);
    at_ += std::min(bytes, pattern_.size() - at_);
  }

  [[noreturn]] void refuse(std::string_view construct) const {
    throw Error("a regular expression holds what nibble does not read as its tokenizer would")
        .file(file_)
        .value("construct", std::string(construct))
        .value("byte", at_)
        .value("pattern", std::string(pattern_.substr(0, 400)))
        .way_out("use the tokenizer.json of the model's release");
  }

  void step() {
    const char c = pattern_[at_];
    if (c == '\\') return escape();
    if (c == '[') ++sets_;
    if (c == ']' && sets_ > 0) --sets_;
    if (sets_ > 0 && next_is("--")) refuse("-- in a set");
    if (sets_ == 0 && next_is("(?")) check_group();
    // Of {m,n}+ Oniguruma takes several, ICU takes the most and gives nothing back.
    if (sets_ == 0 && next_is("}+")) refuse("}+");
    take(1);
  }

  void escape() {
    if (at_ + 1 == pattern_.size()) return take(1);
    const char c = pattern_[at_ + 1];
    if (kForeignEscapes.find(c) != std::string_view::npos) refuse(pattern_.substr(at_, 2));
    if (c == 'w' || c == 'W' || c == 'h' || c == 'H') {
      out_ += c == 'W' || c == 'H' ? "[^" : "[";
      out_ += c == 'w' || c == 'W' ? kWord : kHexDigit;
      out_ += ']';
      at_ += 2;
      return;
    }
    const bool braced = std::string_view("pPxu").find(c) != std::string_view::npos && next_is("{", 2);
    const size_t close = braced ? pattern_.find('}', at_) : std::string_view::npos;
    if (braced && next_is("^", 3)) refuse(pattern_.substr(at_, 4));
    take(close == std::string_view::npos ? 2 : close + 1 - at_);
  }

  // Only i and x mean the same in both.
  void check_group() const {
    size_t i = at_ + 2;
    while (i < pattern_.size() && (pattern_[i] == 'i' || pattern_[i] == 'x' || pattern_[i] == '-')) ++i;
    if (i < pattern_.size() && std::string_view(":)=!>#<").find(pattern_[i]) != std::string_view::npos) return;
    refuse(pattern_.substr(at_, i + 1 - at_));
  }

  std::string_view pattern_;
  const std::string& file_;
  std::string out_;
  size_t at_ = 0;
  int sets_ = 0;  // how deep in [ ]
};

}  // namespace

std::string icu_pattern(std::string_view pattern, const std::string& file) { return Translation(pattern, file).run(); }

std::string quoted_pattern(std::string_view text) {
  std::string pattern;
  for (const char c : text) {
    const bool special = std::string_view("\\^$.|?*+()[]{}#&-~ \t\n\r\v\f").find(c) != std::string_view::npos;
    if (special) {
      pattern += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
    } else {
      pattern += c;
    }
  }
  return pattern;
}

}  // namespace nibble
