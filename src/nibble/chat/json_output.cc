#include "nibble/chat/json_output.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "nibble/chat/operators.h"
#include "nibble/chat/python_text.h"
#include "nibble/chat/sorting.h"
#include "nibble/chat/unicode.h"

namespace nibble::jinja {
namespace {

class JsonWriter {
 public:
  explicit JsonWriter(Call& call) : run_(call.run), out_(call.run.budget) {
    ascii_ = call.flag(0);
    sort_ = call.flag(3);
    if (call.has(1) && !call.args[1].is<None>()) {
      item_separator_ = ",";
      indent_ = call.args[1].text() != nullptr ? call.args[1].text()->bytes()
                                               : std::string(checked_width(index_argument(call.args[1])), ' ');
    }
    if (call.has(2) && !call.args[2].is<None>()) read_separators(call.args[2]);
  }

  TextPtr finish(const Value& value) {
    write(value);
    return out_.finish();
  }

 private:
  size_t checked_width(int64_t width) const {
    if (width <= 0) return 0;
    run_.budget.check_size(static_cast<uint64_t>(width));
    return static_cast<size_t>(width);
  }

  void read_separators(const Value& given) {
    const Values parts = to_list(run_, given);
    if (parts.size() != 2 || parts[0].text() == nullptr || parts[1].text() == nullptr) {
      fail("separators must be two strings");
    }
    item_separator_ = parts[0].text()->bytes();
    key_separator_ = parts[1].text()->bytes();
  }

  void line(size_t level) {
    if (!indent_) return;
    out_.add("\n");
    for (size_t i = 0; i < level; ++i) out_.add(*indent_);
  }

  void write(const Value& value) {
    run_.budget.step();
    const Deeper deeper(run_);
    if (const Text* text = value.text()) return string(*text);
    if (value.is<None>()) return out_.add("null");
    if (const bool* yes = value.get<bool>()) return out_.add(*yes ? "true" : "false");
    if (const Integer* number = value.get<Integer>()) return out_.add(integer_text(*number));
    if (const double* number = value.get<double>()) return out_.add(number_text(*number));
    if (const ListPtr* items = value.get<ListPtr>()) return list(**items);
    if (const DictPtr* entries = value.get<DictPtr>()) return dict(**entries);
    fail(fmt::format("Object of type {} is not JSON serializable", type_name(value)));
  }

  static std::string number_text(double number) {
    if (std::isnan(number)) return "NaN";
    if (std::isinf(number)) return number > 0 ? "Infinity" : "-Infinity";
    return float_text(number);
  }

  void list(const List& list) {
    out_.add("[");
    ++level_;
    bool first = true;
    for (const Value& item : list.items) {
      if (!std::exchange(first, false)) out_.add(item_separator_);
      line(level_);
      write(item);
    }
    --level_;
    if (!list.items.empty()) line(level_);
    out_.add("]");
  }

  void dict(const Dict& dict) {
    std::vector<size_t> order(dict.entries.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    if (sort_) {
      merge_sort(order, [&](size_t a, size_t b) {
        return compare(run_, Comparison::kLess, dict.entries[a].first, dict.entries[b].first);
      });
    }
    out_.add("{");
    ++level_;
    bool first = true;
    for (const size_t i : order) {
      if (!std::exchange(first, false)) out_.add(item_separator_);
      line(level_);
      key(dict.entries[i].first);
      out_.add(key_separator_);
      write(dict.entries[i].second);
    }
    --level_;
    if (!dict.entries.empty()) line(level_);
    out_.add("}");
  }

  void key(const Value& key) {
    if (const Text* text = key.text()) return string(*text);
    out_.add("\"");
    if (key.is<None>()) {
      out_.add("null");
    } else if (const bool* yes = key.get<bool>()) {
      out_.add(*yes ? "true" : "false");
    } else if (const Integer* number = key.get<Integer>()) {
      out_.add(integer_text(*number));
    } else if (const double* floating = key.get<double>()) {
      out_.add(number_text(*floating));
    } else {
      fail(fmt::format("keys must be str, int, float, bool or None, not {}", type_name(key)));
    }
    out_.add("\"");
  }

  std::string escaped(char32_t c) const {
    switch (c) {
      case '"': return "\\\"";
      case '\\': return "\\\\";
      case '\n': return "\\n";
      case '\r': return "\\r";
      case '\t': return "\\t";
      case '\b': return "\\b";
      case '\f': return "\\f";
      default: break;
    }
    const auto code = static_cast<uint32_t>(c);
    if (code >= 0x20 && (!ascii_ || code < 0x7F)) return "";
    if (code < 0x10000) return fmt::format("\\u{:04x}", code);
    return fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((code - 0x10000) >> 10), 0xDC00 + ((code - 0x10000) & 0x3FF));
  }

  void string(const Text& text) {
    out_.add("\"");
    size_t plain = 0;
    for (size_t at = 0; at < text.size();) {
      const size_t special = at;
      const std::string replacement = escaped(next_code_point(text.bytes(), &at));
      if (replacement.empty()) continue;
      if (plain < special) out_.add(text, plain, special);
      out_.add(replacement);
      plain = at;
    }
    if (plain < text.size()) out_.add(text, plain, text.size());
    out_.add("\"");
  }

  Run& run_;
  TextBuilder out_;
  bool ascii_ = false, sort_ = false;
  std::optional<std::string> indent_;
  std::string item_separator_ = ", ", key_separator_ = ": ";
  size_t level_ = 0;
};

}  // namespace

Value filter_tojson(Call& call) { return Value{JsonWriter(call).finish(call.self)}; }

}  // namespace nibble::jinja
