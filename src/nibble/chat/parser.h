// From tokens to a template, or an error with line and column: for syntax, and by its name for every construct that is
// not supported.
#pragma once

#include <string_view>

#include "nibble/chat/ast.h"

namespace nibble::jinja {

// Names are not resolved yet.
Template parse_template(std::string_view source, const std::string& name, const ChatLimits& limits);

// What the parsers of expressions and statements share: a place in the tokens.
class TokenReader {
 public:
  TokenReader(std::vector<Token> tokens, const std::string& name, const ChatLimits& limits)
      : name_(name), limits_(limits), tokens_(std::move(tokens)) {}

  const Token& peek(size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  Token take() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  bool is(TokenKind kind) const { return peek().kind == kind; }
  bool is_operator(std::string_view text, size_t ahead = 0) const { return matches(TokenKind::kOperator, text, ahead); }
  bool is_name(std::string_view text, size_t ahead = 0) const { return matches(TokenKind::kName, text, ahead); }
  bool take_operator(std::string_view text) { return is_operator(text) && (take(), true); }
  bool take_name(std::string_view text) { return is_name(text) && (take(), true); }
  // Does a tuple without brackets end here? `end_name`: a name that ends it, too.
  bool ends_tuple(std::string_view end_name) const {
    return is(TokenKind::kVariableEnd) || is(TokenKind::kBlockEnd) || is_operator(")") ||
           (!end_name.empty() && is_name(end_name));
  }
  void expect_operator(std::string_view text);
  void expect_name(std::string_view text);
  void expect(TokenKind kind);
  std::string any_name();
  [[noreturn]] void refuse(std::string message) const { refuse_at(peek().at, std::move(message)); }
  [[noreturn]] void refuse_at(Position at, std::string message) const { refuse_syntax(name_, at, std::move(message)); }
  [[noreturn]] void refuse_unexpected(std::string_view wanted) const;

  const std::string& name() const { return name_; }
  const ChatLimits& limits() const { return limits_; }

  // How often each name that means something in some places has been read or assigned so far.
  struct Uses {
    size_t loop_read = 0, loop_assigned = 0, caller = 0, kwargs = 0, varargs = 0;
  };
  Uses uses;
  uint32_t depth = 0;

 private:
  bool matches(TokenKind kind, std::string_view text, size_t ahead) const {
    return peek(ahead).kind == kind && peek(ahead).text == text;
  }

  const std::string& name_;
  const ChatLimits& limits_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
};

// Refuses nesting that the limits do not allow.
class NestingGuard {
 public:
  explicit NestingGuard(TokenReader& reader);
  NestingGuard(const NestingGuard&) = delete;
  NestingGuard& operator=(const NestingGuard&) = delete;
  ~NestingGuard() { --reader_.depth; }

 private:
  TokenReader& reader_;
};

ExprPtr parse_expression(TokenReader& reader);
// As parse_expression, or a tuple without brackets. `with_condition`: "a if b else c" may stand there.
ExprPtr parse_tuple(TokenReader& reader, bool with_condition = true, std::string_view end_name = {});
// "| name(…) | name …" behind `input`, which may be null: the text of a block. `begins`: without the first "|".
ExprPtr parse_filters(TokenReader& reader, ExprPtr input, bool begins = false);
// `end_name`: the name behind the target.
Target parse_target(TokenReader& reader, std::string_view end_name = {}, bool with_attributes = false);

}  // namespace nibble::jinja
