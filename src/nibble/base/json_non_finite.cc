#include "nibble/base/json_non_finite.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace nibble {
namespace {

using Json = nlohmann::ordered_json;

struct Word {
  std::string_view text, zero;
  double value;
};
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr Word kWords[] = {
    {"NaN", "0.0", std::numeric_limits<double>::quiet_NaN()},
    {"Infinity", "0.000000", kInfinity},
    {"-Infinity", "-0.000000", -kInfinity},
};

bool is_number_char(char c) {
  return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
}

bool separates(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ',' || c == ':' || c == '[' || c == ']' || c == '{' ||
         c == '}';
}

const Word* word_at(std::string_view text, size_t at) {
  if (at > 0 && !separates(text[at - 1])) return nullptr;
  for (const Word& word : kWords) {
    if (text.substr(at, word.text.size()) != word.text) continue;
    const size_t end = at + word.text.size();
    if (end == text.size() || separates(text[end])) return &word;
  }
  return nullptr;
}

// One past the closing quote of the string whose opening quote is at `at`, or the end of the text.
size_t string_end(std::string_view text, size_t at) {
  for (++at; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == '"') {
      return at + 1;
    }
  }
  return text.size();
}

void append_leaf(std::string* out, const Json& value) {
  if (value.is_number_float() && !std::isfinite(value.get<double>())) {
    const double number = value.get<double>();
    *out += std::isnan(number) ? "NaN" : number > 0 ? "Infinity" : "-Infinity";
    return;
  }
  *out += value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Nesting is bounded by kMaxJsonDepth for what was read and shallow for what is made here.
void append_value(std::string* out, const Json& value, size_t indent) {
  const bool object = value.is_object();
  if ((!object && !value.is_array()) || value.empty()) return append_leaf(out, value);
  out->push_back(object ? '{' : '[');
  const char* separator = "\n";
  for (auto member = value.begin(); member != value.end(); ++member) {
    *out += separator;
    out->append(indent + 2, ' ');
    if (object) {
      append_leaf(out, Json(member.key()));
      *out += ": ";
    }
    append_value(out, *member, indent + 2);
    separator = ",\n";
  }
  out->push_back('\n');
  out->append(indent, ' ');
  out->push_back(object ? '}' : ']');
}

}  // namespace

FiniteText without_non_finite(std::string_view text) {
  FiniteText finite;
  // Most files hold neither word, not even in a string.
  if (text.find("NaN") == std::string_view::npos && text.find("Infinity") == std::string_view::npos) return finite;
  uint64_t numbers = 0;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"') {
      at = string_end(text, at);
    } else if (const Word* word = c == 'N' || c == 'I' || c == '-' ? word_at(text, at) : nullptr) {
      if (finite.non_finite.empty()) finite.replaced = text;
      finite.replaced.replace(at, word->zero.size(), word->zero);
      finite.non_finite.push_back({numbers++, word->value});
      at += word->text.size();
    } else if (c == '-' || (c >= '0' && c <= '9')) {
      ++numbers;
      while (at < text.size() && is_number_char(text[at])) ++at;
    } else {
      ++at;
    }
  }
  return finite;
}

std::string_view non_finite_word(std::string_view text) {
  for (const Word& word : kWords) {
    if (text.substr(0, word.text.size()) == word.text) return word.text;
  }
  return {};
}

void append_json(std::string* out, const Json& value) { append_value(out, value, 0); }

}  // namespace nibble
