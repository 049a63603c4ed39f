#include "nibble/base/error.h"

#include <fmt/format.h>

namespace nibble {
namespace {

// Length in bytes of the valid UTF-8 sequence at the front of `text`; 0 if there is none.
size_t utf8_length(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const size_t length = lead < 0x80 ? 1 : lead >= 0xF0 && lead < 0xF5 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC2 ? 2 : 0;
  if (length == 0 || lead >= 0xF5 || length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) return 0;
  }
  return length;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto byte = static_cast<unsigned char>(text[0]);
    const size_t length = utf8_length(text);
    // U+0080..U+009F are control characters too (C2 80..C2 9F), and some terminals obey them.
    const bool control =
        byte < 0x20 || byte == 0x7F || (byte == 0xC2 && length == 2 && static_cast<unsigned char>(text[1]) < 0xA0);
    if (length == 0 || control) {
      out += fmt::format("\\x{:02x}", byte);
      text.remove_prefix(1);
    } else {
      out.append(text.substr(0, length));
      text.remove_prefix(length);
    }
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
    details += fmt::format("{}{} {}", details.empty() ? "" : ", ", key, printable(text));
  };
  if (!file_.empty()) add("file", file_);
  if (!tensor_.empty()) add("tensor", tensor_);
  for (const auto& [key, text] : values_) add(key, text);
  rendered_ = printable(message_);
  for (const auto& doing : context_) rendered_ += fmt::format(" [while {}]", printable(doing));
  if (!details.empty()) rendered_ += fmt::format(" ({})", details);
  for (size_t i = 0; i < ways_out_.size(); ++i) {
    rendered_ += fmt::format("{}{}", i == 0 ? "; try: " : "; or: ", printable(ways_out_[i]));
  }
}

}  // namespace nibble
