// The template as tokens: text between tags with white space already taken off, and what stands in tags.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace nibble::jinja {

struct Position {
  uint32_t line = 1, column = 1;  // columns count characters
};

enum class TokenKind : uint8_t {
  kData,
  kVariableBegin,
  kVariableEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text;  // of a string what it means; of anything else as it is written
  Position at;
};

// `name` is the file that errors name. The source is valid UTF-8. The last token is kEnd.
std::vector<Token> tokenize(std::string_view source, const std::string& name);

[[noreturn]] void refuse_syntax(const std::string& name, Position at, std::string message,
                                std::string way_out = "take the template from the model's own release");

}  // namespace nibble::jinja
