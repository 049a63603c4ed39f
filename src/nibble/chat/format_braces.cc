// `"{}".format(value)`.
#include <fmt/format.h>

#include <algorithm>

#include "nibble/chat/operators.h"
#include "nibble/chat/python_text.h"
#include "nibble/chat/string_tools.h"

namespace nibble::jinja {
namespace {

class BraceFormat {
 public:
  BraceFormat(Run& run, const Arguments& arguments, bool escapes)
      : run_(run), arguments_(arguments), escapes_(escapes) {}

  TextPtr expand(const Text& format, int depth) {
    if (depth < 0) fail("Max string recursion exceeded");
    TextBuilder out(run_.budget);
    const std::string& bytes = format.bytes();
    size_t plain = 0;
    for (size_t at = 0; (at = bytes.find_first_of("{}", at)) != bytes.npos;) {
      if (at + 1 < bytes.size() && bytes[at + 1] == bytes[at]) {
        out.add(format, plain, at + 1);
        at = plain = at + 2;
        continue;
      }
      if (bytes[at] == '}') fail("Single '}' encountered in format string");
      if (at + 1 == bytes.size()) fail("Single '{' encountered in format string");
      out.add(format, plain, at);
      const size_t end = end_of_field(bytes, at + 1);
      field(out, format, at + 1, end, depth);
      at = plain = end + 1;
    }
    out.add(format, plain, format.size());
    return out.finish(format.is_markup());
  }

 private:
  static size_t end_of_field(const std::string& bytes, size_t at) {
    int open = 1;
    for (; at < bytes.size(); ++at) {
      open += bytes[at] == '{' ? 1 : bytes[at] == '}' ? -1 : 0;
      if (open == 0) return at;
    }
    fail("expected '}' before end of string");
  }

  void field(TextBuilder& out, const Text& format, size_t begin, size_t end, int depth) {
    const std::string_view whole = std::string_view(format.bytes()).substr(begin, end - begin);
    // Brackets may hold what otherwise ends the name.
    size_t name_end = 0;
    for (bool in_brackets = false; name_end < whole.size(); ++name_end) {
      const char c = whole[name_end];
      if (c == '[') in_brackets = true;
      if (c == ']') in_brackets = false;
      if (!in_brackets && (c == ':' || c == '!')) break;
    }
    std::string_view rest = whole.substr(name_end);
    char conversion = 0;
    if (rest.starts_with('!')) {
      if (rest.size() < 2 || (rest.size() > 2 && rest[2] != ':')) fail("expected ':' after conversion specifier");
      conversion = rest[1];
      rest.remove_prefix(2);
    }
    Value value = convert(find(whole.substr(0, name_end)), conversion);
    if (rest.starts_with(':')) rest.remove_prefix(1);
    const TextPtr spec_text = make_text(run_.budget, rest);
    const TextPtr spec = expand(*spec_text, depth - 1);
    if (!escapes_) return append_formatted(run_, out, value, spec->bytes());
    TextBuilder shown(run_.budget);
    const bool is_markup = value.text() != nullptr && value.text()->is_markup();
    append_formatted(run_, shown, value, spec->bytes());
    out.add(*escape_text(run_, Value{shown.finish(is_markup)}));
  }

  Value convert(Value value, char conversion) {
    if (conversion == 0) return value;
    if (conversion == 's') return Value{to_text(run_, value)};
    if (conversion != 'r' && conversion != 'a') fail("Unknown conversion specifier");
    TextBuilder repr(run_.budget);
    append_repr(run_, repr, value);
    return Value{repr.finish()};
  }

  Value argument(std::string_view name) {
    const bool is_number = std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; });
    if (!is_number) {
      for (const auto& [key, value] : arguments_.named) {
        if (key == name) return value;
      }
      fail(fmt::format("there is no argument '{}' for the format", name));
    }
    const bool automatic = name.empty();
    if (numbering_ != 0 && numbering_ != (automatic ? 'a' : 'm')) {
      fail("cannot switch between manual field specification and automatic field numbering");
    }
    numbering_ = automatic ? 'a' : 'm';
    const size_t place = automatic ? next_++ : name.size() > 9 ? SIZE_MAX : std::stoul(std::string(name));
    if (place >= arguments_.positional.size()) fail("there are too few arguments for the format");
    return arguments_.positional[place];
  }

  Value find(std::string_view path) {
    const size_t end = std::min(path.find_first_of(".["), path.size());
    Value value = argument(path.substr(0, end));
    path.remove_prefix(end);
    while (!path.empty()) {
      run_.budget.step();
      if (path.front() == '.') {
        const size_t stop = std::min(path.find_first_of(".[", 1), path.size());
        if (stop == 1) fail("Empty attribute in format string");
        value = attribute_of(run_, value, path.substr(1, stop - 1));
        path.remove_prefix(stop);
        continue;
      }
      const size_t close = path.find(']');
      if (path.front() != '[' || close == path.npos || close == 1) fail("a bracket in the format is not closed");
      const std::string_view key = path.substr(1, close - 1);
      const bool is_number = key.size() < 18 && std::ranges::all_of(key, [](char c) { return c >= '0' && c <= '9'; });
      value =
          item_of(run_, value, is_number ? integer(std::stoll(std::string(key))) : Value{make_text(run_.budget, key)});
      path.remove_prefix(close + 1);
      if (!path.empty() && path.front() != '.' && path.front() != '[') {
        fail("Only '.' or '[' may follow ']' in format field specifier");
      }
    }
    return value;
  }

  Run& run_;
  const Arguments& arguments_;
  bool escapes_;
  char numbering_ = 0;  // a: automatic, m: by hand
  size_t next_ = 0;
};

}  // namespace

TextPtr format_braces(Run& run, const TextPtr& format, const Arguments& arguments) {
  return BraceFormat(run, arguments, format->is_markup()).expand(*format, 2);
}

}  // namespace nibble::jinja
