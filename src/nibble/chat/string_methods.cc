// The methods of Python's `str`.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "nibble/chat/calls.h"
#include "nibble/chat/operators.h"
#include "nibble/chat/string_case.h"
#include "nibble/chat/string_split.h"
#include "nibble/chat/string_tools.h"
#include "nibble/chat/unicode.h"

namespace nibble::jinja {
namespace {

const TextPtr& self_text(const Call& call) { return *call.self.get<TextPtr>(); }

// The part of the text that optional arguments `start` and `end` (from argument `first`) leave, as byte offsets.
struct Window {
  size_t begin = 0, end = 0;
  bool is_empty_range = false;  // start behind end: not even "" is found there
};
Window window(const Call& call, size_t first) {
  const Text& text = *self_text(call);
  const auto length = static_cast<int64_t>(text.length());
  const auto bound = [&](size_t i, int64_t otherwise) {
    if (!call.has(i) || call.args[i].is<None>()) return otherwise;
    const int64_t at = index_argument(call.args[i]);
    return at < 0 ? std::max<int64_t>(at + length, 0) : at;
  };
  const int64_t start = bound(first, 0);
  const int64_t end = std::min(bound(first + 1, length), length);
  if (start > end) return {0, 0, true};
  return {text.offset_of(static_cast<size_t>(start)), text.offset_of(static_cast<size_t>(end)), false};
}

int64_t find_in(Call& call, bool from_right) {
  const Text& text = *self_text(call);
  const Text& wanted = *call.text(0);
  const Window part = window(call, 1);
  if (part.is_empty_range) return -1;
  const std::string_view piece = std::string_view(text.bytes()).substr(part.begin, part.end - part.begin);
  const size_t at =
      from_right ? rfind_bytes(call.run, piece, wanted.bytes()) : find_bytes(call.run, piece, wanted.bytes());
  return at == piece.npos ? -1 : static_cast<int64_t>(text.index_of(part.begin + at));
}

template <bool kFromRight>
Value find(Call& call) {
  return integer(find_in(call, kFromRight));
}
template <bool kFromRight>
Value index(Call& call) {
  const int64_t at = find_in(call, kFromRight);
  if (at < 0) fail("substring not found");
  return integer(at);
}

Value count(Call& call) {
  const Text& text = *self_text(call);
  const Text& wanted = *call.text(0);
  const Window part = window(call, 1);
  if (part.is_empty_range) return integer(0);
  const std::string_view piece = std::string_view(text.bytes()).substr(part.begin, part.end - part.begin);
  if (wanted.size() == 0) {
    return integer(static_cast<int64_t>(text.index_of(part.end) - text.index_of(part.begin)) + 1);
  }
  int64_t found = 0;
  call.run.budget.work(piece.size());
  for (size_t at = 0;; at += wanted.size(), ++found) {
    const void* next = memmem(piece.data() + at, piece.size() - at, wanted.bytes().data(), wanted.size());
    if (next == nullptr) return integer(found);
    at = static_cast<size_t>(static_cast<const char*>(next) - piece.data());
  }
}

template <bool kAtEnd>
Value touches(Call& call) {
  const Window part = window(call, 1);
  const auto fits = [&](const Value& given) {
    const Text* wanted = given.text();
    if (wanted == nullptr) {
      if (given.is<Undefined>()) fail_undefined(given);
      fail(fmt::format("{} first arg must be str or a tuple of str, not {}", kAtEnd ? "endswith" : "startswith",
                       type_name(given)));
    }
    call.run.budget.work(wanted->size());
    const std::string_view piece = std::string_view(self_text(call)->bytes()).substr(part.begin, part.end - part.begin);
    return !part.is_empty_range && (kAtEnd ? piece.ends_with(wanted->bytes()) : piece.starts_with(wanted->bytes()));
  };
  const ListPtr* choices = call.args[0].get<ListPtr>();
  if (choices == nullptr || !(*choices)->is_tuple()) return boolean(fits(call.args[0]));
  return boolean(std::ranges::any_of((*choices)->items, fits));
}

template <bool kLeft, bool kRight>
Value strip(Call& call) {
  return Value{strip_text(call.run, self_text(call), call.text_or_none(0), kLeft, kRight)};
}

Value replace(Call& call) {
  const TextPtr& text = self_text(call);
  const TextPtr to = text->is_markup() ? escape_text(call.run, call.args[1]) : call.text(1);
  return Value{replace_text(call.run, text, call.text(0), to, call.index(2, -1))};
}

Value join(Call& call) {
  const TextPtr& glue = self_text(call);
  const IteratorPtr iterator = try_iterate(call.run, call.args[0]);
  if (iterator == nullptr) fail("can only join an iterable");
  TextBuilder out(call.run.budget);
  Value each;
  for (int64_t i = 0; iterator->next(call.run, &each); ++i) {
    if (i > 0) out.add(*glue);
    if (glue->is_markup()) {
      out.add(*escape_text(call.run, each));
      continue;
    }
    if (each.text() == nullptr) {
      fail(fmt::format("sequence item {}: expected str instance, {} found", i, type_name(each)));
    }
    out.add(*each.text());
  }
  return Value{out.finish(glue->is_markup())};
}

template <bool kSuffix>
Value remove(Call& call) {
  const TextPtr& text = self_text(call);
  const Text& part = *call.text(0);
  if (kSuffix) {
    const bool fits = part.size() > 0 && text->bytes().ends_with(part.bytes());
    return Value{cut(call.run.budget, text, 0, fits ? text->size() - part.size() : text->size())};
  }
  return Value{cut(call.run.budget, text, text->bytes().starts_with(part.bytes()) ? part.size() : 0, text->size())};
}

Value format(Call& call) { return Value{format_braces(call.run, self_text(call), call.arguments)}; }

Value format_map(Call& call) {
  const DictPtr* dict = call.args[0].get<DictPtr>();
  if (dict == nullptr) fail("format_map() needs a mapping");
  Arguments arguments;
  for (const auto& [key, value] : (*dict)->entries) {
    if (key.text() != nullptr) arguments.named.emplace_back(key.text()->bytes(), value);
  }
  return Value{format_braces(call.run, self_text(call), arguments)};
}

constexpr std::array<Native, 44> kMethods = {{
    {"strip", "/ chars?", strip<true, true>},
    {"lstrip", "/ chars?", strip<true, false>},
    {"rstrip", "/ chars?", strip<false, true>},
    {"split", "sep? maxsplit?", string_split},
    {"rsplit", "sep? maxsplit?", string_rsplit},
    {"splitlines", "keepends?", string_splitlines},
    {"partition", "/ sep", string_partition},
    {"rpartition", "/ sep", string_rpartition},
    {"startswith", "/ prefix start? end?", touches<false>},
    {"endswith", "/ suffix start? end?", touches<true>},
    {"replace", "/ old new count?", replace},
    {"removeprefix", "/ prefix", remove<false>},
    {"removesuffix", "/ suffix", remove<true>},
    {"find", "/ sub start? end?", find<false>},
    {"rfind", "/ sub start? end?", find<true>},
    {"index", "/ sub start? end?", index<false>},
    {"rindex", "/ sub start? end?", index<true>},
    {"count", "/ sub start? end?", count},
    {"join", "/ iterable", join},
    {"format", "*", format},
    {"format_map", "/ mapping", format_map},
    {"upper", "", string_upper},
    {"lower", "", string_lower},
    {"title", "", string_title},
    {"capitalize", "", string_capitalize},
    {"casefold", "", string_casefold},
    {"swapcase", "", string_swapcase},
    {"center", "/ width fillchar?", string_center},
    {"ljust", "/ width fillchar?", string_ljust},
    {"rjust", "/ width fillchar?", string_rjust},
    {"zfill", "/ width", string_zfill},
    {"expandtabs", "tabsize?", string_expandtabs},
    {"isalnum", "", string_isalnum},
    {"isalpha", "", string_isalpha},
    {"isascii", "", string_isascii},
    {"isdecimal", "", string_isdecimal},
    {"isdigit", "", string_isdigit},
    {"isnumeric", "", string_isnumeric},
    {"isspace", "", string_isspace},
    {"isprintable", "", string_isprintable},
    {"isidentifier", "", string_isidentifier},
    {"islower", "", string_islower},
    {"isupper", "", string_isupper},
    {"istitle", "", string_istitle},
}};

}  // namespace

std::span<const Native> string_methods() { return kMethods; }

}  // namespace nibble::jinja
