#include "nibble/chat/string_case.h"

#include <fmt/format.h>

#include <algorithm>

#include "nibble/chat/unicode.h"

namespace nibble::jinja {
namespace {

const TextPtr& self_text(const Call& call) { return *call.self.get<TextPtr>(); }

// Every character by the case that `choose` says for it; null: as it is.
template <typename Choose>
TextPtr change_case(Run& run, const TextPtr& text, const Choose& choose) {
  run.budget.step(text->size() / 16);
  TextBuilder out(run.budget);
  const std::string& bytes = text->bytes();
  size_t mark = 0;
  const auto& flips = text->marks().flips;
  bool trusted = text->marks().first_trusted;
  std::string mapped;
  for (size_t at = 0; at < bytes.size();) {
    const size_t begin = at;
    const char32_t c = next_code_point(bytes, &at);
    if (mark < flips.size() && flips[mark] == begin) {
      out.add(mapped, trusted);
      mapped.clear();
      trusted = !trusted;
      ++mark;
    }
    const std::optional<Case> to = choose(c);
    if (to) {
      append_case(&mapped, *to, bytes, begin);
    } else {
      mapped.append(bytes, begin, at - begin);
    }
  }
  out.add(mapped, trusted);
  return out.finish(text->is_markup());
}

template <typename Predicate>
Value all_characters(const Call& call, const Predicate& predicate, bool if_empty = false) {
  const std::string& bytes = self_text(call)->bytes();
  call.run.budget.step(bytes.size() / 16);
  for (size_t at = 0; at < bytes.size();) {
    if (!predicate(next_code_point(bytes, &at))) return boolean(false);
  }
  return boolean(!bytes.empty() || if_empty);
}

const Text& fill_character(const Call& call) {
  static const TextPtr space = template_text(" ");
  if (!call.has(1)) return *space;
  if (call.text(1)->length() != 1) fail("The fill character must be exactly one character long");
  return *call.text(1);
}

TextPtr padded(Run& run, const TextPtr& text, int64_t left, int64_t right, const Text& fill) {
  if (left + right <= 0) return text;
  run.budget.check_size(static_cast<uint64_t>(left + right));
  run.budget.step(static_cast<uint64_t>(left + right) / 16);
  TextBuilder out(run.budget);
  for (int64_t i = 0; i < left; ++i) out.add(fill);
  out.add(*text);
  for (int64_t i = 0; i < right; ++i) out.add(fill);
  return out.finish(text->is_markup());
}

int64_t missing_width(const Text& text, int64_t width) {
  const auto length = static_cast<int64_t>(text.length());
  return width <= length ? 0 : width - length;
}

// islower and isupper: no character of the other case, and one of this.
Value all_of_case(const Call& call, bool (*wanted)(char32_t), bool (*other)(char32_t)) {
  const std::string& bytes = self_text(call)->bytes();
  call.run.budget.step(bytes.size() / 16);
  bool found = false;
  for (size_t at = 0; at < bytes.size();) {
    const char32_t c = next_code_point(bytes, &at);
    if (other(c) || is_title(c)) return boolean(false);
    found = found || wanted(c);
  }
  return boolean(found);
}

}  // namespace

Value string_upper(Call& call) {
  return Value{change_case(call.run, self_text(call), [](char32_t) { return std::optional(Case::kUpper); })};
}
Value string_lower(Call& call) {
  return Value{change_case(call.run, self_text(call), [](char32_t) { return std::optional(Case::kLower); })};
}
Value string_casefold(Call& call) {
  return Value{change_case(call.run, self_text(call), [](char32_t) { return std::optional(Case::kFold); })};
}

Value string_title(Call& call) {
  bool in_word = false;
  return Value{change_case(call.run, self_text(call), [&in_word](char32_t c) {
    return std::optional(std::exchange(in_word, is_cased(c)) ? Case::kLower : Case::kTitle);
  })};
}

Value string_capitalize(Call& call) {
  bool first = true;
  return Value{change_case(call.run, self_text(call), [&first](char32_t) {
    return std::optional(std::exchange(first, false) ? Case::kTitle : Case::kLower);
  })};
}

Value string_swapcase(Call& call) {
  return Value{change_case(call.run, self_text(call), [](char32_t c) -> std::optional<Case> {
    if (is_upper(c)) return Case::kLower;
    if (is_lower(c)) return Case::kUpper;
    return std::nullopt;
  })};
}

TextPtr title_words(Run& run, const TextPtr& text) {
  bool begins = true;
  return change_case(run, text, [&begins](char32_t c) {
    const bool separates = c == '-' || c == '(' || c == '{' || c == '[' || c == '<' || is_space(c);
    return std::optional(std::exchange(begins, separates) && !separates ? Case::kUpper : Case::kLower);
  });
}

TextPtr center_text(Run& run, const TextPtr& text, int64_t width, const Text& fill) {
  const int64_t missing = missing_width(*text, width);
  // The odd one goes to the left where the width is odd, as Python has it.
  const int64_t left = missing / 2 + (missing & width & 1);
  return padded(run, text, left, missing - left, fill);
}

Value string_center(Call& call) {
  return Value{center_text(call.run, self_text(call), call.index(0, 0), fill_character(call))};
}
Value string_ljust(Call& call) {
  const TextPtr& text = self_text(call);
  return Value{padded(call.run, text, 0, missing_width(*text, call.index(0, 0)), fill_character(call))};
}
Value string_rjust(Call& call) {
  const TextPtr& text = self_text(call);
  return Value{padded(call.run, text, missing_width(*text, call.index(0, 0)), 0, fill_character(call))};
}

Value string_zfill(Call& call) {
  const TextPtr& text = self_text(call);
  const int64_t missing = missing_width(*text, call.index(0, 0));
  if (missing == 0) return call.self;
  call.run.budget.check_size(static_cast<uint64_t>(missing));
  const bool has_sign = text->bytes().starts_with('-') || text->bytes().starts_with('+');
  TextBuilder out(call.run.budget);
  if (has_sign) out.add(*text, 0, 1);
  out.add(std::string(static_cast<size_t>(missing), '0'));
  out.add(*text, has_sign ? 1 : 0, text->size());
  return Value{out.finish(text->is_markup())};
}

Value string_expandtabs(Call& call) {
  const TextPtr& text = self_text(call);
  const int64_t tab = std::min<int64_t>(call.index(0, 8), INT32_MAX);
  call.run.budget.step(text->size() / 16);
  TextBuilder out(call.run.budget);
  int64_t column = 0;
  for (size_t at = 0; at < text->size();) {
    const size_t begin = at;
    const char32_t c = next_code_point(text->bytes(), &at);
    if (c != '\t') {
      out.add(*text, begin, at);
      column = c == '\n' || c == '\r' ? 0 : column + 1;
    } else if (tab > 0) {
      const int64_t spaces = tab - column % tab;
      call.run.budget.check_size(static_cast<uint64_t>(spaces) + out.size());
      out.add(std::string(static_cast<size_t>(spaces), ' '));
      column += spaces;
    }
  }
  return Value{out.finish(text->is_markup())};
}

Value string_isalnum(Call& call) { return all_characters(call, is_alnum); }
Value string_isalpha(Call& call) { return all_characters(call, is_alpha); }
Value string_isascii(Call& call) { return boolean(self_text(call)->is_ascii()); }
Value string_isdecimal(Call& call) { return all_characters(call, is_decimal); }
Value string_isdigit(Call& call) { return all_characters(call, is_digit); }
Value string_isnumeric(Call& call) { return all_characters(call, is_numeric); }
Value string_isspace(Call& call) { return all_characters(call, is_space); }
Value string_isprintable(Call& call) { return all_characters(call, is_printable, true); }

Value string_isidentifier(Call& call) {
  bool first = true;
  return all_characters(call, [&first](char32_t c) {
    return std::exchange(first, false) ? is_identifier_start(c) : is_identifier_part(c);
  });
}

Value string_islower(Call& call) { return all_of_case(call, is_lower, is_upper); }
Value string_isupper(Call& call) { return all_of_case(call, is_upper, is_lower); }

Value string_istitle(Call& call) {
  const std::string& bytes = self_text(call)->bytes();
  call.run.budget.step(bytes.size() / 16);
  bool in_word = false;
  bool found = false;
  for (size_t at = 0; at < bytes.size();) {
    const char32_t c = next_code_point(bytes, &at);
    if (is_upper(c) || is_title(c)) {
      if (in_word) return boolean(false);
      in_word = found = true;
    } else if (is_lower(c)) {
      if (!in_word) return boolean(false);
    } else {
      in_word = false;
    }
  }
  return boolean(found);
}

}  // namespace nibble::jinja
