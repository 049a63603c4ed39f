#include "nibble/base/error.h"

#include <fmt/format.h>

#include <algorithm>

namespace nibble {
namespace {

// No single text of a message is longer than this when it is printed: a hostile header may hold a name of megabytes.
constexpr size_t kShownBytes = 1000;

struct CodePoint {
  char32_t value = 0;
  size_t length = 0;  // in bytes; 0: the text does not begin with valid UTF-8
};

CodePoint first_code_point(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {lead, 1};
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead >= 0xF5 || length > text.size()) return {};
  char32_t value = lead & (0x7Fu >> length);
  for (const char c : text.substr(1, length - 1)) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xC0) != 0x80) return {};
    value = value << 6 | (byte & 0x3Fu);
  }
  // Longer than needed, half of a surrogate pair, beyond Unicode.
  constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (value < kSmallest[length] || (value >= 0xD800 && value < 0xE000) || value > 0x10FFFF) return {};
  return {value, length};
}

// What a terminal or a reader would obey instead of show: C0 and C1 controls, line separators, and the marks that turn
// the direction of writing (with which a name can look like another one).
bool is_control(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x200E || c == 0x200F || (c >= 0x2028 && c <= 0x202E) ||
         (c >= 0x2066 && c <= 0x2069);
}

std::string shown(std::string_view text) {
  if (text.size() <= kShownBytes) return printable(text);
  return fmt::format("{}… ({} bytes)", printable(text.substr(0, kShownBytes)), text.size());
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const CodePoint point = first_code_point(text);
    const size_t length = std::max<size_t>(point.length, 1);
    if (point.length == 0 || is_control(point.value)) {
      for (const char c : text.substr(0, length)) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out.append(text.substr(0, length));
    }
    text.remove_prefix(length);
  }
  return out;
}

Error::Error(std::string message) : message_(std::move(message)) { render(); }

Error& Error::file(std::string path) {
  file_ = std::move(path);
  render();
  return *this;
}

Error& Error::tensor(std::string name) {
  tensor_ = std::move(name);
  render();
  return *this;
}

Error& Error::value(std::string key, std::string text) {
  values_.emplace_back(std::move(key), std::move(text));
  render();
  return *this;
}

Error& Error::value(std::string key, float number) { return value(std::move(key), fmt::format("{}", number)); }

Error& Error::value(std::string key, double number) { return value(std::move(key), fmt::format("{}", number)); }

Error& Error::way_out(std::string text) {
  ways_out_.push_back(std::move(text));
  render();
  return *this;
}

Error& Error::context(std::string doing) {
  context_.push_back(std::move(doing));
  render();
  return *this;
}

void Error::render() {
  std::string details;
  const auto add = [&details](std::string_view key, std::string_view text) {
    details += fmt::format("{}{} {}", details.empty() ? "" : ", ", key, shown(text));
  };
  if (!file_.empty()) add("file", file_);
  if (!tensor_.empty()) add("tensor", tensor_);
  for (const auto& [key, text] : values_) add(key, text);
  rendered_ = shown(message_);
  for (const auto& doing : context_) rendered_ += fmt::format(" [while {}]", shown(doing));
  if (!details.empty()) rendered_ += fmt::format(" ({})", details);
  for (size_t i = 0; i < ways_out_.size(); ++i) {
    rendered_ += fmt::format("{}{}", i == 0 ? "; try: " : "; or: ", shown(ways_out_[i]));
  }
}

}  // namespace nibble
