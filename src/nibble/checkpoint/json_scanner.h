// A strict, forward-only JSON reader over memory, for the containers' headers and indexes: hundreds of thousands of
// small values that are read once and need no document tree. It accepts what base/json.h accepts (Python's NaN and
// Infinity only if asked to), with two things left to the caller: a key standing twice (the caller keeps the names
// anyway), and a number too large for its reader.
//
//   JsonScanner scan(text, "model.safetensors");
//   scan.object([&](std::string_view key) { … scan.string() … });   // the callback consumes the key's value
//   scan.end();
//
// Views are into the text, or, for strings with escapes, into a buffer that the next such string overwrites: copy a key
// before reading on. Errors name the source and the byte. Nesting is bounded by kMaxJsonDepth.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace nibble {

enum class JsonKind : uint8_t { kObject, kArray, kString, kNumber, kBool, kNull };

enum class NonFiniteNumbers : uint8_t { kRefuse, kAccept };

class JsonScanner {
 public:
  JsonScanner(std::string_view text, const std::string& source_name,
              NonFiniteNumbers non_finite = NonFiniteNumbers::kRefuse)
      : begin_(text.data()),
        at_(begin_),
        end_(begin_ + text.size()),
        source_(source_name),
        non_finite_(non_finite == NonFiniteNumbers::kAccept) {}

  // What the next value is, by its first character; Error if no value starts here.
  JsonKind peek();

  template <typename OnMember>
  void object(OnMember&& on_member) {
    enter('{', "an object");
    if (!closes('}')) {
      do {
        const std::string_view key = string();
        expect(':', "`:`");
        on_member(key);
      } while (continues('}'));
    }
    --depth_;
  }

  template <typename OnElement>
  void array(OnElement&& on_element) {
    enter('[', "an array");
    if (!closes(']')) {
      do {
        on_element();
      } while (continues(']'));
    }
    --depth_;
  }

  std::string_view string();
  std::string_view number();  // as written
  std::string_view skip();    // any value, checked; as written
  void end();                 // only white space may follow

 private:
  void skip_space() {
    while (at_ < end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
  }
  void expect(char c, const char* what) {
    skip_space();
    if (at_ == end_ || *at_ != c) fail(what);
    ++at_;
  }
  bool closes(char close) {
    skip_space();
    if (at_ == end_ || *at_ != close) return false;
    ++at_;
    return true;
  }
  // After a member or element: true if another follows, false if `close` does.
  bool continues(char close) {
    if (closes(close)) return false;
    expect(',', close == '}' ? "`,` or `}`" : "`,` or `]`");
    return true;
  }
  void enter(char open, const char* what);
  void literal(std::string_view word);
  std::string_view non_finite_word() const;
  void digits();
  void unescape();
  uint32_t hex4();
  uint32_t code_point();
  void check_utf8();
  [[noreturn]] void fail(const char* expected) const;

  const char* begin_;
  const char* at_;
  const char* end_;
  const std::string& source_;
  bool non_finite_;
  std::string unescaped_;
  int depth_ = 0;
};

// A number as written, if it is a whole number of 0 or more that fits 64 bits, without sign, point or exponent.
std::optional<uint64_t> whole_number(std::string_view number);
bool is_utf8(std::string_view text);
// Appends `text` as a JSON string: quotes, escapes for what must be escaped, UTF-8 as it is.
void append_json_string(std::string* out, std::string_view text);

}  // namespace nibble
