#include "nibble/chat/string_tools.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "nibble/chat/operators.h"
#include "nibble/chat/python_text.h"
#include "nibble/chat/unicode.h"

namespace nibble::jinja {
namespace {

bool ends_line(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

// Between all characters, at both ends too.
void interleave(TextBuilder& out, const Text& text, const Text& with, int64_t count) {
  size_t at = 0;
  for (; count != 0; --count) {
    out.add(with);
    if (at == text.size()) return;
    const size_t begin = at;
    next_code_point(text.bytes(), &at);
    out.add(text, begin, at);
  }
  out.add(text, at, text.size());
}

}  // namespace

size_t find_bytes(Run& run, std::string_view text, std::string_view wanted, size_t from) {
  if (from > text.size()) return text.npos;
  run.budget.work(text.size() - from);
  // glibc's memmem takes linear time; std::string_view's search does not.
  const void* found = memmem(text.data() + from, text.size() - from, wanted.data(), wanted.size());
  return found == nullptr ? text.npos : static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

size_t rfind_bytes(Run& run, std::string_view text, std::string_view wanted) {
  const std::string backwards(text.rbegin(), text.rend());
  const std::string wanted_backwards(wanted.rbegin(), wanted.rend());
  const size_t found = find_bytes(run, backwards, wanted_backwards);
  return found == text.npos ? found : text.size() - found - wanted.size();
}

TextPtr concat(Run& run, const TextPtr& left, const TextPtr& right) {
  TextBuilder out(run.budget);
  const bool is_markup = left->is_markup() || right->is_markup();
  out.add(is_markup ? *escape_text(run, Value{left}) : *left);
  out.add(is_markup ? *escape_text(run, Value{right}) : *right);
  return out.finish(is_markup);
}

TextPtr repeat(Run& run, const TextPtr& text, const Value& count) {
  const auto times = static_cast<uint64_t>(std::max<int64_t>(index_argument(count), 0));
  uint64_t size = 0;
  if (__builtin_mul_overflow(times, static_cast<uint64_t>(text->size()), &size)) size = UINT64_MAX;
  run.budget.check_size(size);
  TextBuilder out(run.budget);
  for (uint64_t i = 0; size > 0 && i < times; ++i) {
    if (i % 64 == 0) run.budget.step();
    out.add(*text);
  }
  return out.finish(text->is_markup());
}

TextPtr escape_text(Run& run, const Value& value) {
  const TextPtr* given = value.get<TextPtr>();
  TextPtr text = given == nullptr ? to_text(run, value) : *given;
  if (text->is_markup()) return text;
  TextBuilder out(run.budget);
  size_t plain = 0;
  const std::string& bytes = text->bytes();
  for (size_t at = 0; (at = bytes.find_first_of("&<>'\"", at)) != bytes.npos; ++at) {
    out.add(*text, plain, at);
    const char c = bytes[at];
    out.add(c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '"' ? "&#34;" : "&#39;");
    plain = at + 1;
  }
  out.add(*text, plain, text->size());
  return out.finish(true);
}

TextPtr replace_text(Run& run, const TextPtr& text, const TextPtr& from, const TextPtr& to, int64_t count) {
  TextBuilder out(run.budget);
  if (from->size() == 0) {
    interleave(out, *text, *to, count);
    return out.finish(text->is_markup());
  }
  size_t at = 0;
  run.budget.work(text->size());
  for (; count != 0; --count) {
    const void* found = memmem(text->bytes().data() + at, text->size() - at, from->bytes().data(), from->size());
    if (found == nullptr) break;
    const auto place = static_cast<size_t>(static_cast<const char*>(found) - text->bytes().data());
    if (place > at) out.add(*text, at, place);
    out.add(*to);
    at = place + from->size();
  }
  if (at < text->size()) out.add(*text, at, text->size());
  return out.finish(text->is_markup());
}

TextPtr strip_text(Run& run, const TextPtr& text, const Text* chars, bool left, bool right) {
  std::set<char32_t> wanted;
  for (size_t at = 0; chars != nullptr && at < chars->size();) wanted.insert(next_code_point(chars->bytes(), &at));
  run.budget.work(text->size());
  if (chars != nullptr) run.budget.step(chars->size() / 16);
  const auto goes = [&](char32_t c) { return chars == nullptr ? is_space(c) : wanted.contains(c); };
  size_t begin = 0;
  size_t end = text->size();
  while (left && begin < end) {
    size_t behind = begin;
    if (!goes(next_code_point(text->bytes(), &behind))) break;
    begin = behind;
  }
  while (right && begin < end) {
    const size_t last = previous_offset(text->bytes(), end);
    size_t behind = last;
    if (!goes(next_code_point(text->bytes(), &behind))) break;
    end = last;
  }
  return cut(run.budget, text, begin, end);
}

Values split_lines(Run& run, const TextPtr& text, bool keep_ends) {
  Values lines;
  const std::string& bytes = text->bytes();
  size_t begin = 0;
  for (size_t at = 0; at < bytes.size();) {
    const size_t end = at;
    const char32_t c = next_code_point(bytes, &at);
    if (!ends_line(c)) continue;
    if (c == '\r' && at < bytes.size() && bytes[at] == '\n') ++at;
    lines.push_back(Value{cut(run.budget, text, begin, keep_ends ? at : end)});
    begin = at;
  }
  if (begin < bytes.size()) lines.push_back(Value{cut(run.budget, text, begin, bytes.size())});
  run.budget.step(lines.size() / 4);
  return lines;
}

}  // namespace nibble::jinja
