#include "nibble/chat/lexer.h"

#include <fmt/format.h>

#include <array>

#include "nibble/base/error.h"
#include "nibble/chat/string_literal.h"
#include "nibble/chat/unicode.h"

namespace nibble::jinja {
namespace {

// Longest first.
constexpr std::array<std::string_view, 26> kOperators = {"**", "//", "==", "!=", ">=", "<=", "+", "-", "/",
                                                         "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                                         ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};

// One kind of line end, and the last one gone.
std::string normalized(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
      continue;
    }
    out += '\n';
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

class Lexer {
 public:
  Lexer(std::string_view source, const std::string& name) : name_(name), source_(normalized(source)) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) text();
    add(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void refuse(std::string message) { refuse_syntax(name_, position(at_), std::move(message)); }

  // Offsets only ever grow between calls, but for a few steps back.
  Position position(size_t offset) {
    if (offset < counted_) {
      counted_ = 0;
      counted_at_ = {};
    }
    while (counted_ < offset) {
      if (source_[counted_] == '\n') {
        ++counted_at_.line;
        counted_at_.column = 0;
      }
      next_code_point(source_, &counted_);
      ++counted_at_.column;
    }
    return counted_at_;
  }

  void add(TokenKind kind, std::string text) { tokens_.push_back({kind, std::move(text), position(at_)}); }
  void add_data(std::string_view text) {
    if (!text.empty()) add(TokenKind::kData, std::string(text));
  }
  bool starts(std::string_view text) const { return std::string_view(source_).substr(at_).starts_with(text); }
  void skip_spaces() {
    while (at_ < source_.size()) {
      size_t behind = at_;
      if (!is_space(next_code_point(source_, &behind))) return;
      at_ = behind;
    }
  }
  // What the sign in front of a closing tag asks for; `at_` is behind the tag.
  void after_end(char sign, bool trims_line) {
    if (sign == '-') skip_spaces();
    if (sign == 0 && trims_line && starts("\n")) ++at_;
    line_starts_ = at_ > 0 && source_[at_ - 1] == '\n';
  }

  // The text in front of a tag at `end`, of which `sign` is the first character.
  std::string_view before_tag(size_t begin, size_t end, char sign, bool is_variable) const {
    std::string_view text = std::string_view(source_).substr(begin, end - begin);
    if (sign == '-') {
      while (!text.empty()) {
        const size_t last = previous_offset(text, text.size());
        size_t behind = last;
        if (!is_space(next_code_point(text, &behind))) break;
        text = text.substr(0, last);
      }
    } else if (sign != '+' && !is_variable) {
      const size_t line = text.rfind('\n') + 1;  // 0 if there is none
      if (line > 0 || line_starts_) {
        size_t at = line;
        while (at < text.size()) {
          size_t behind = at;
          if (!is_space(next_code_point(text, &behind))) return text;
          at = behind;
        }
        text = text.substr(0, line);
      }
    }
    return text;
  }

  void text() {
    const size_t begin = at_;
    size_t tag = begin;
    while ((tag = source_.find('{', tag)) != source_.npos) {
      const char kind = tag + 1 < source_.size() ? source_[tag + 1] : '\0';
      if (kind == '{' || kind == '%' || kind == '#') break;
      ++tag;
    }
    if (tag == source_.npos) {
      add_data(std::string_view(source_).substr(begin));
      at_ = source_.size();
      return;
    }
    const char kind = source_[tag + 1];
    const char next = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
    const char sign = next == '-' || next == '+' ? next : '\0';
    add_data(before_tag(begin, tag, sign, kind == '{'));
    at_ = tag;
    line_starts_ = false;
    if (kind == '#') return comment(sign);
    if (kind == '%' && raw()) return;
    add(kind == '{' ? TokenKind::kVariableBegin : TokenKind::kBlockBegin, "");
    at_ += sign == 0 ? 2 : 3;
    code(kind == '{');
  }

  void comment(char sign) {
    const size_t begin = at_ + (sign == 0 ? 2 : 3);
    const size_t end = source_.find("#}", begin);
    if (end == source_.npos) refuse("a comment has no end");
    const char last = end > begin ? source_[end - 1] : '\0';
    at_ = end + 2;
    after_end(last == '-' || last == '+' ? last : '\0', true);
  }

  // `{% WORD %}` at `at`: where it ends, and the signs at both of its ends; 0 if it is none.
  size_t tag_of(size_t at, std::string_view word, char* open, char* close) {
    const auto peek = [this](size_t i) { return i < source_.size() ? source_[i] : '\0'; };
    const size_t before = at_;
    at_ = at + 2;
    *open = peek(at_) == '-' || peek(at_) == '+' ? source_[at_++] : '\0';
    skip_spaces();
    size_t end = 0;
    if (starts(word)) {
      at_ += word.size();
      skip_spaces();
      *close = peek(at_) == '-' || peek(at_) == '+' ? source_[at_++] : '\0';
      if (starts("%}")) end = at_ + 2;
    }
    at_ = before;
    return end;
  }

  bool raw() {
    char open = 0;
    char close = 0;
    const size_t begin = tag_of(at_, "raw", &open, &close);
    if (begin == 0 || close == '+') return false;
    at_ = begin;
    after_end(close, false);
    const size_t content = at_;
    for (size_t tag = content; (tag = source_.find("{%", tag)) != source_.npos; ++tag) {
      const size_t end = tag_of(tag, "endraw", &open, &close);
      if (end == 0) continue;
      add_data(before_tag(content, tag, open, false));
      at_ = end;
      after_end(close, true);
      return true;
    }
    refuse("a raw block has no end");
  }

  // Is the end of the tag here? `sign`: the character in front of it.
  bool takes_end(bool is_variable) {
    if (!open_.empty()) return false;
    const std::string_view close = is_variable ? "}}" : "%}";
    const char first = source_[at_];
    const bool has_sign = first == '-' || (first == '+' && !is_variable);
    if (!std::string_view(source_).substr(at_ + (has_sign ? 1 : 0)).starts_with(close)) return false;
    add(is_variable ? TokenKind::kVariableEnd : TokenKind::kBlockEnd, "");
    at_ += close.size() + (has_sign ? 1 : 0);
    after_end(has_sign ? first : '\0', !is_variable);
    return true;
  }

  void code(bool is_variable) {
    open_.clear();
    while (at_ < source_.size()) {
      if (takes_end(is_variable)) return;
      const char c = source_[at_];
      size_t behind = at_;
      const char32_t point = next_code_point(source_, &behind);
      if (is_space(point)) {
        at_ = behind;
      } else if (c >= '0' && c <= '9') {
        number();
      } else if (c == '"' || c == '\'') {
        string(c);
      } else if (is_identifier_part(point)) {
        identifier();
      } else {
        symbol();
      }
    }
  }

  void number() {
    const bool after_dot = at_ > 0 && source_[at_ - 1] == '.';
    const std::string_view rest = std::string_view(source_).substr(at_);
    const size_t as_float = after_dot ? 0 : float_length(rest);
    const size_t length = as_float > 0 ? as_float : integer_length(rest);
    std::string digits(rest.substr(0, length));
    std::erase(digits, '_');
    add(as_float > 0 ? TokenKind::kFloat : TokenKind::kInteger, std::move(digits));
    at_ += length;
  }

  void string(char quote) {
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? size_t{2} : size_t{1};
    if (end >= source_.size()) refuse("a string has no end");
    std::string problem;
    std::string text = unescape(std::string_view(source_).substr(at_ + 1, end - at_ - 1), &problem);
    if (!problem.empty()) refuse(problem);
    add(TokenKind::kString, std::move(text));
    at_ = end + 1;
  }

  void identifier() {
    const size_t begin = at_;
    size_t end = at_;
    while (end < source_.size()) {
      size_t behind = end;
      if (!is_identifier_part(next_code_point(source_, &behind))) break;
      end = behind;
    }
    size_t first = begin;
    if (!is_identifier_start(next_code_point(source_, &first))) refuse("a name begins with an invalid character");
    add(TokenKind::kName, source_.substr(begin, end - begin));
    at_ = end;
  }

  void symbol() {
    for (const std::string_view symbol : kOperators) {
      if (!starts(symbol)) continue;
      if (symbol == "(" || symbol == "[" || symbol == "{") {
        open_ += symbol == "(" ? ')' : symbol == "[" ? ']' : '}';
      } else if (symbol == ")" || symbol == "]" || symbol == "}") {
        if (open_.empty() || open_.back() != symbol[0]) refuse(fmt::format("unexpected '{}'", symbol));
        open_.pop_back();
      }
      add(TokenKind::kOperator, std::string(symbol));
      at_ += symbol.size();
      return;
    }
    size_t behind = at_;
    next_code_point(source_, &behind);
    refuse(fmt::format("unexpected character '{}'", source_.substr(at_, behind - at_)));
  }

  const std::string& name_;
  const std::string source_;
  std::vector<Token> tokens_;
  std::string open_;  // the brackets that are to be closed
  size_t at_ = 0, counted_ = 0;
  Position counted_at_;
  bool line_starts_ = true;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source, const std::string& name) { return Lexer(source, name).run(); }

void refuse_syntax(const std::string& name, Position at, std::string message, std::string way_out) {
  throw Error(std::move(message))
      .file(name)
      .value("line", at.line)
      .value("column", at.column)
      .way_out(std::move(way_out));
}

}  // namespace nibble::jinja
