// `"%s" % value`.
#include <fmt/format.h>

#include <cmath>

#include "nibble/chat/number_format.h"
#include "nibble/chat/operators.h"
#include "nibble/chat/python_text.h"
#include "nibble/chat/string_tools.h"
#include "nibble/chat/unicode.h"

namespace nibble::jinja {
namespace {

class PercentFormat {
 public:
  PercentFormat(Run& run, const TextPtr& format, const Value& values)
      : run_(run), format_(*format), bytes_(format->bytes()), values_(values), out_(run.budget) {
    const ListPtr* list = values.get<ListPtr>();
    if (list != nullptr && (*list)->is_tuple()) tuple_ = list->get();
    has_keys_ =
        values.is<Undefined>() || values.is<DictPtr>() || values.is<Range>() || (list != nullptr && tuple_ == nullptr);
  }

  TextPtr finish() {
    size_t plain = 0;
    while ((at_ = bytes_.find('%', plain)) != bytes_.npos) {
      out_.add(format_, plain, at_);
      ++at_;
      field();
      plain = at_;
    }
    out_.add(format_, plain, format_.size());
    const bool all_used = tuple_ != nullptr ? used_ == tuple_->items.size() : used_ > 0 || has_keys_;
    if (!all_used) fail("not all arguments converted during string formatting");
    return out_.finish(format_.is_markup());
  }

 private:
  char peek() {
    if (at_ >= bytes_.size()) fail("incomplete format");
    return bytes_[at_];
  }
  char take() {
    const char c = peek();
    ++at_;
    return c;
  }

  Value next_argument() {
    if (tuple_ != nullptr) {
      if (used_ == tuple_->items.size()) fail("not enough arguments for format string");
      return tuple_->items[used_++];
    }
    if (used_++ > 0) fail("not enough arguments for format string");
    return values_;
  }

  // "(key)", if there is one.
  Value keyed_argument() {
    if (peek() != '(') return Value{Missing{}};
    if (!has_keys_) fail("format requires a mapping");
    const size_t begin = ++at_;
    for (int open = 1; open > 0;) {
      const char c = take();
      open += c == '(' ? 1 : c == ')' ? -1 : 0;
    }
    if (values_.is<Undefined>()) fail_undefined(values_);
    const DictPtr* dict = values_.get<DictPtr>();
    const std::string key = bytes_.substr(begin, at_ - 1 - begin);
    const Value* found = dict == nullptr ? nullptr : (*dict)->find(key);
    if (found == nullptr) fail(fmt::format("there is no key '{}' for the format", key));
    return *found;
  }

  int64_t number_or_star() {
    if (peek() == '*') {
      ++at_;
      return index_argument(next_argument());
    }
    int64_t number = 0;
    while (peek() >= '0' && peek() <= '9') {
      number = number * 10 + (take() - '0');
      run_.budget.check_size(static_cast<uint64_t>(number));
    }
    return number;
  }

  void field() {
    if (peek() == '%') {
      out_.add(format_, at_, at_ + 1);
      ++at_;
      return;
    }
    FieldSpec spec;
    Value value = keyed_argument();
    for (bool more = true; more;) {
      switch (peek()) {
        case '-': spec.align = '<'; break;
        case '+': spec.sign = '+'; break;
        case ' ': spec.sign = spec.sign == '+' ? '+' : ' '; break;
        case '#': spec.alternate = true; break;
        case '0':
          spec.zero = true;
          spec.fill = "0";
          break;
        default: more = false;
      }
      if (more) ++at_;
    }
    spec.width = number_or_star();
    if (spec.width < 0) {
      spec.align = '<';
      spec.width = -spec.width;
    }
    run_.budget.check_size(static_cast<uint64_t>(spec.width));
    if (peek() == '.') {
      ++at_;
      spec.precision = std::max<int64_t>(number_or_star(), 0);
    }
    if (peek() == 'h' || peek() == 'l' || peek() == 'L') ++at_;
    spec.type = take();
    if (value.is<Missing>()) value = next_argument();
    convert(value, spec);
  }

  void convert(const Value& value, FieldSpec& spec) {
    switch (spec.type) {
      case 's':
      case 'r':
      case 'a':
      case 'c': return text(value, spec);
      case 'd':
      case 'i':
      case 'u':
      case 'x':
      case 'X':
      case 'o': return whole(value, spec);
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G': return floating(value, spec);
      default: fail(fmt::format("unsupported format character '{}'", printable_type(spec.type)));
    }
  }

  static std::string printable_type(char c) { return c >= ' ' && c < 0x7F ? std::string(1, c) : "?"; }

  void text(const Value& value, FieldSpec spec) {
    TextPtr shown;
    if (spec.type == 's') {
      shown = format_.is_markup() ? escape_text(run_, value) : to_text(run_, value);
    } else if (spec.type == 'c') {
      Integer storage = 0;
      const Integer* code = as_integer(value, &storage);
      if (code != nullptr) {
        if (*code < 0 || *code > 0x10FFFF || (*code >= 0xD800 && *code < 0xE000)) fail("%c arg not in range");
        std::string character;
        append_utf8(&character, static_cast<char32_t>(*code));
        shown = make_text(run_.budget, character);
      } else if (value.text() != nullptr && value.text()->length() == 1) {
        shown = *value.get<TextPtr>();
      } else {
        fail("%c requires int or char");
      }
      spec.precision = -1;
    } else {
      TextBuilder repr(run_.budget);
      append_repr(run_, repr, value);
      shown = repr.finish();
      if (spec.type == 'a' && !shown->is_ascii()) fail("%a of text that is not ASCII is not supported");
      if (format_.is_markup()) shown = escape_text(run_, Value{shown});
    }
    spec.fill = " ";
    if (spec.align == 0) spec.align = '>';
    add_padded(run_, out_, shown, spec);
  }

  void whole(const Value& value, FieldSpec spec) {
    Integer storage = 0;
    const Integer* number = as_integer(value, &storage);
    if (number == nullptr) {
      const double* floating = value.get<double>();
      const bool decimal = spec.type == 'd' || spec.type == 'i' || spec.type == 'u';
      if (floating == nullptr || !decimal || !std::isfinite(*floating) || std::fabs(*floating) > 1e38) {
        if (value.is<Undefined>()) fail_undefined(value);
        fail(fmt::format("%{} format: a number is required, not {}", spec.type, type_name(value)));
      }
      storage = static_cast<Integer>(*floating);
      number = &storage;
    }
    if (spec.align == '<') spec.fill = " ";
    add_padded(out_, format_integer(*number, spec), spec);
  }

  void floating(const Value& value, FieldSpec spec) {
    Integer storage = 0;
    const Integer* number = as_integer(value, &storage);
    const double* given = value.get<double>();
    if (number == nullptr && given == nullptr) {
      if (value.is<Undefined>()) fail_undefined(value);
      fail(fmt::format("must be real number, not {}", type_name(value)));
    }
    if (spec.align == '<') spec.fill = " ";
    add_padded(out_, format_float(run_, given != nullptr ? *given : static_cast<double>(*number), spec), spec);
  }

  Run& run_;
  const Text& format_;
  const std::string& bytes_;
  const Value& values_;
  TextBuilder out_;
  const List* tuple_ = nullptr;
  bool has_keys_ = false;
  size_t at_ = 0, used_ = 0;
};

}  // namespace

TextPtr format_percent(Run& run, const TextPtr& format, const Value& values) {
  return PercentFormat(run, format, values).finish();
}

}  // namespace nibble::jinja
