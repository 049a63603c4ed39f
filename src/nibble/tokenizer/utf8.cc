#include "nibble/tokenizer/utf8.h"

#include <unicode/utf16.h>
#include <unicode/utf8.h>

#include "nibble/checkpoint/json_scanner.h"

namespace nibble {
namespace {

// What may follow the first byte of a character (Unicode, table 3-7).
struct Lead {
  uint8_t bytes;  // of the whole character; 1: the byte begins none
  uint8_t second_low, second_high;
};

Lead lead_of(uint8_t first) {
  if (first < 0xC2 || first > 0xF4) return {1, 0, 0};
  if (first < 0xE0) return {2, 0x80, 0xBF};
  if (first == 0xE0) return {3, 0xA0, 0xBF};
  if (first == 0xED) return {3, 0x80, 0x9F};
  if (first < 0xF0) return {3, 0x80, 0xBF};
  if (first == 0xF0) return {4, 0x90, 0xBF};
  if (first == 0xF4) return {4, 0x80, 0x8F};
  return {4, 0x80, 0xBF};
}

}  // namespace

Utf8Step next_utf8(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return {Utf8State::kWhole, 1, first};
  const Lead lead = lead_of(first);
  if (lead.bytes == 1) return {Utf8State::kBroken, 1, 0};
  uint32_t code_point = first & (0x7Fu >> lead.bytes);
  for (uint8_t i = 1; i < lead.bytes; ++i) {
    if (i == text.size()) return {Utf8State::kCut, i, 0};
    const uint8_t low = i == 1 ? lead.second_low : uint8_t{0x80};
    const uint8_t high = i == 1 ? lead.second_high : uint8_t{0xBF};
    if (byte(i) < low || byte(i) > high) return {Utf8State::kBroken, i, 0};
    code_point = code_point << 6 | (byte(i) & 0x3Fu);
  }
  return {Utf8State::kWhole, lead.bytes, code_point};
}

std::string replace_broken_utf8(std::string_view text) {
  if (is_utf8(text)) return std::string(text);
  std::string whole;
  whole.reserve(text.size());
  while (!text.empty()) {
    const Utf8Step step = next_utf8(text);
    whole += step.state == Utf8State::kWhole ? text.substr(0, step.bytes) : kReplacement;
    text.remove_prefix(step.bytes);
  }
  return whole;
}

std::u16string utf16_of(std::string_view text) {
  std::u16string wide;
  wide.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const auto byte = static_cast<uint8_t>(text[i]);
    if (byte < 0x80) {
      wide += static_cast<char16_t>(byte);
      ++i;
      continue;
    }
    const Utf8Step step = next_utf8(text.substr(i, 4));
    if (step.code_point > 0xFFFF) {
      wide += static_cast<char16_t>(U16_LEAD(step.code_point));
      wide += static_cast<char16_t>(U16_TRAIL(step.code_point));
    } else {
      wide += static_cast<char16_t>(step.code_point);
    }
    i += step.bytes;
  }
  return wide;
}

void append_utf8(std::u16string_view text, std::string* out) {
  for (size_t i = 0; i < text.size();) {
    if (text[i] < 0x80) {
      *out += static_cast<char>(text[i++]);
      continue;
    }
    uint32_t code_point = text[i++];
    if (U16_IS_LEAD(code_point) && i < text.size())
      code_point = static_cast<uint32_t>(U16_GET_SUPPLEMENTARY(code_point, text[i++]));
    if (code_point >= 0x10000) *out += static_cast<char>(0xF0 | code_point >> 18);
    if (code_point >= 0x10000) *out += static_cast<char>(0x80 | (code_point >> 12 & 0x3F));
    if (code_point >= 0x800 && code_point < 0x10000) *out += static_cast<char>(0xE0 | code_point >> 12);
    if (code_point >= 0x800) *out += static_cast<char>(0x80 | (code_point >> 6 & 0x3F));
    if (code_point < 0x800) *out += static_cast<char>(0xC0 | code_point >> 6);
    *out += static_cast<char>(0x80 | (code_point & 0x3F));
  }
}

}  // namespace nibble
