#include "nibble/chat/text.h"

#include <algorithm>

namespace nibble::jinja {
namespace {

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

size_t count_code_points(std::string_view bytes) {
  return bytes.size() - static_cast<size_t>(std::ranges::count_if(bytes, is_continuation));
}

}  // namespace

bool Marks::trusted_at(size_t offset) const {
  const auto passed = std::ranges::upper_bound(flips, offset) - flips.begin();
  return first_trusted != (passed % 2 != 0);
}

Text::Text(std::string bytes, Marks marks, bool is_markup, Lease lease)
    : bytes_(std::move(bytes)),
      marks_(std::move(marks)),
      is_markup_(is_markup),
      length_(count_code_points(bytes_)),
      lease_(std::move(lease)) {}

size_t Text::offset_of(size_t index) const {
  if (is_ascii()) return std::min(index, size());
  size_t offset = 0;
  for (; index > 0 && offset < size(); --index) {
    ++offset;
    while (offset < size() && is_continuation(bytes_[offset])) ++offset;
  }
  return offset;
}

size_t Text::index_of(size_t offset) const {
  return is_ascii() ? offset : count_code_points(std::string_view(bytes_).substr(0, offset));
}

void TextBuilder::account(size_t bytes) {
  budget_->check_size(bytes_.size() + bytes);
  budget_->work(bytes);
  lease_.grow(bytes);
}

void TextBuilder::append(std::string_view bytes, bool trusted) {
  if (bytes.empty()) return;
  if (bytes_.empty()) {
    marks_.first_trusted = trusted;
  } else if (trusted != last_trusted_) {
    lease_.grow(sizeof(size_t));
    marks_.flips.push_back(bytes_.size());
  }
  last_trusted_ = trusted;
  bytes_ += bytes;
}

void TextBuilder::add(std::string_view bytes, bool trusted) {
  account(bytes.size());
  append(bytes, trusted);
}

void TextBuilder::add(const Text& text, size_t begin, size_t end) {
  account(end - begin);
  const auto& flips = text.marks().flips;
  auto flip = std::ranges::upper_bound(flips, begin);
  bool trusted = text.marks().first_trusted != ((flip - flips.begin()) % 2 != 0);
  budget_->step(static_cast<uint64_t>(flips.end() - flip) / 16);
  while (begin < end) {
    const size_t stop = flip == flips.end() ? end : std::min(*flip++, end);
    append(std::string_view(text.bytes()).substr(begin, stop - begin), trusted);
    begin = stop;
    trusted = !trusted;
  }
}

TextPtr TextBuilder::finish(bool is_markup) {
  lease_.grow(sizeof(Text) + 32);
  return std::make_shared<const Text>(std::move(bytes_), std::move(marks_), is_markup, std::move(lease_));
}

TextPtr make_text(Budget& budget, std::string_view bytes, bool trusted) {
  TextBuilder builder(budget);
  builder.add(bytes, trusted);
  return builder.finish();
}

TextPtr template_text(std::string bytes) {
  return std::make_shared<const Text>(std::move(bytes), Marks{true, {}}, false, Lease());
}

TextPtr cut(Budget& budget, const TextPtr& text, size_t begin, size_t end) {
  if (begin == 0 && end == text->size()) return text;
  TextBuilder builder(budget);
  if (begin < end) builder.add(*text, begin, end);
  return builder.finish(text->is_markup());
}

TextPtr as_markup(Budget& budget, const TextPtr& text, bool is_markup) {
  if (text->is_markup() == is_markup) return text;
  TextBuilder builder(budget);
  builder.add(*text);
  return builder.finish(is_markup);
}

}  // namespace nibble::jinja
