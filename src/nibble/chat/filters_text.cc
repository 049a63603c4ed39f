#include "nibble/chat/filters_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "nibble/chat/operators.h"
#include "nibble/chat/python_text.h"
#include "nibble/chat/string_case.h"
#include "nibble/chat/string_tools.h"
#include "nibble/chat/unicode.h"

namespace nibble::jinja {
namespace {

// A string as it is, markup included; anything else as `str` writes it.
TextPtr soft_text(Run& run, const Value& value) {
  const TextPtr* text = value.get<TextPtr>();
  return text == nullptr ? to_text(run, value) : *text;
}

Value as_method(Call& call, Value (*method)(Call&)) {
  const Value self{soft_text(call.run, call.self)};
  Call inner{call.run, self, call.args, {}};
  return method(inner);
}

void add_url_quoted(TextBuilder& out, std::string_view bytes, bool in_query) {
  for (const char c : bytes) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("_.-~").find(c) != std::string_view::npos || (c == '/' && !in_query);
    if (plain) {
      out.add({&c, 1});
    } else if (c == ' ' && in_query) {
      out.add("+");
    } else {
      out.add(fmt::format("%{:02X}", static_cast<unsigned char>(c)));
    }
  }
}

}  // namespace

Value filter_upper(Call& call) { return as_method(call, string_upper); }
Value filter_lower(Call& call) { return as_method(call, string_lower); }
Value filter_capitalize(Call& call) { return as_method(call, string_capitalize); }
Value filter_title(Call& call) { return Value{title_words(call.run, soft_text(call.run, call.self))}; }

Value filter_trim(Call& call) {
  return Value{strip_text(call.run, soft_text(call.run, call.self), call.text_or_none(0), true, true)};
}

Value filter_replace(Call& call) {
  const int64_t count = call.has(2) && !call.args[2].is<None>() ? call.index(2, -1) : -1;
  return Value{replace_text(call.run, to_text(call.run, call.self), to_text(call.run, call.args[0]),
                            to_text(call.run, call.args[1]), count)};
}

Value filter_center(Call& call) {
  static const TextPtr space = template_text(" ");
  return Value{center_text(call.run, soft_text(call.run, call.self), call.index(0, 80), *space)};
}

Value filter_indent(Call& call) {
  const TextPtr* given = call.self.get<TextPtr>();
  if (given == nullptr) {
    if (call.self.is<Undefined>()) fail_undefined(call.self);
    fail(fmt::format("only strings can be indented, not {}", type_name(call.self)));
  }
  static const TextPtr space = template_text(" ");
  const TextPtr indention =
      call.has(0) && call.args[0].text() != nullptr ? call.text(0) : repeat(call.run, space, integer(call.index(0, 4)));
  TextBuilder source(call.run.budget);
  source.add(**given);
  source.add("\n", true);
  const Values lines = split_lines(call.run, source.finish(), false);
  const bool blank = call.flag(2);
  TextBuilder out(call.run.budget);
  if (call.flag(1)) out.add(*indention);
  for (size_t i = 0; i < lines.size(); ++i) {
    const Text& line = *lines[i].text();
    if (i > 0) out.add("\n", true);
    if (i > 0 && (blank || line.size() > 0)) out.add(*indention);
    out.add(line);
  }
  return Value{out.finish((*given)->is_markup())};
}

Value filter_truncate(Call& call) {
  const auto size = try_length(call.run, call.self);
  if (!size) fail(fmt::format("object of type '{}' has no len()", type_name(call.self)));
  static const TextPtr dots = template_text("...");
  const TextPtr& end = call.has(2) ? call.text(2) : dots;
  const int64_t length = call.index(0, 255);
  const auto end_length = static_cast<int64_t>(end->length());
  const int64_t leeway = call.has(3) && !call.args[3].is<None>() ? call.index(3, 5) : 5;
  if (length < end_length || leeway < 0) fail("the text cannot be truncated to so few characters");
  if (*size - leeway <= length) return call.self;
  const TextPtr* given = call.self.get<TextPtr>();
  if (given == nullptr) fail("only strings can be truncated");
  size_t stop = (*given)->offset_of(static_cast<size_t>(length - end_length));
  if (!call.flag(1)) {
    const size_t space = std::string_view((*given)->bytes()).substr(0, stop).rfind(' ');
    if (space != std::string_view::npos) stop = space;
  }
  return Value{concat(call.run, cut(call.run.budget, *given, 0, stop), end)};
}

Value filter_wordcount(Call& call) {
  const TextPtr text = soft_text(call.run, call.self);
  call.run.budget.step(text->size() / 16);
  int64_t words = 0;
  bool in_word = false;
  for (size_t at = 0; at < text->size();) {
    const char32_t c = next_code_point(text->bytes(), &at);
    const bool is_part = c == '_' || is_alnum(c);
    words += is_part && !in_word ? 1 : 0;
    in_word = is_part;
  }
  return integer(words);
}

Value filter_string(Call& call) { return Value{soft_text(call.run, call.self)}; }
Value filter_escape(Call& call) { return Value{escape_text(call.run, call.self)}; }

Value filter_forceescape(Call& call) { return Value{escape_text(call.run, Value{to_text(call.run, call.self)})}; }

Value filter_safe(Call& call) { return Value{as_markup(call.run.budget, soft_text(call.run, call.self), true)}; }

Value filter_format(Call& call) {
  if (!call.arguments.positional.empty() && !call.arguments.named.empty()) {
    fail("can't handle positional and keyword arguments at the same time");
  }
  const TextPtr format = soft_text(call.run, call.self);
  if (call.arguments.named.empty()) {
    return Value{
        format_percent(call.run, format, make_list(call.run.budget, call.arguments.positional, List::Kind::kTuple))};
  }
  DictBuilder named(call.run);
  for (const auto& [key, value] : call.arguments.named) named.set(make_text(call.run.budget, key), value);
  return Value{format_percent(call.run, format, named.finish())};
}

Value filter_urlencode(Call& call) {
  TextBuilder out(call.run.budget);
  const IteratorPtr iterator = call.self.text() != nullptr ? nullptr : try_iterate(call.run, call.self);
  if (iterator == nullptr) {
    add_url_quoted(out, to_text(call.run, call.self)->bytes(), false);
    return Value{out.finish()};
  }
  const DictPtr* dict = call.self.get<DictPtr>();
  bool first = true;
  for (Value each; iterator->next(call.run, &each);) {
    const Values pair = dict != nullptr ? Values{each, *find_key(call.run, **dict, each)} : to_list(call.run, each);
    if (pair.size() != 2) fail("urlencode needs pairs");
    if (!std::exchange(first, false)) out.add("&");
    add_url_quoted(out, to_text(call.run, pair[0])->bytes(), true);
    out.add("=");
    add_url_quoted(out, to_text(call.run, pair[1])->bytes(), true);
  }
  return Value{out.finish()};
}

Value filter_join(Call& call) {
  const TextPtr glue = call.has(0) ? to_text(call.run, call.args[0]) : nullptr;
  const bool by_attribute = call.has(1) && !call.args[1].is<None>();
  const IteratorPtr iterator = iterate(call.run, call.self);
  TextBuilder out(call.run.budget);
  bool first = true;
  for (Value each; iterator->next(call.run, &each);) {
    if (!std::exchange(first, false) && glue != nullptr) out.add(*glue);
    append_text(call.run, out, by_attribute ? look_up(call.run, each, call.args[1]) : each);
  }
  return Value{out.finish()};
}

}  // namespace nibble::jinja
