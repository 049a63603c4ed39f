// A string that remembers of each byte whether the template wrote it (trusted) or the conversation did.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "nibble/chat/budget.h"

namespace nibble::jinja {

// Origins of the bytes of a text: the first byte's, and the offsets, ascending, where it changes.
struct Marks {
  bool first_trusted = false;
  std::vector<size_t> flips;

  bool trusted_at(size_t offset) const;
};

// UTF-8, always valid; immutable once it is shared. Offsets are in bytes, indices in code points.
class Text {
 public:
  Text(std::string bytes, Marks marks, bool is_markup, Lease lease);

  const std::string& bytes() const { return bytes_; }
  const Marks& marks() const { return marks_; }
  // What `safe` and `escape` make: text that `+` and `%` escape others for.
  bool is_markup() const { return is_markup_; }
  size_t size() const { return bytes_.size(); }
  size_t length() const { return length_; }
  bool is_ascii() const { return length_ == bytes_.size(); }
  // Of the code point `index`, at most length().
  size_t offset_of(size_t index) const;
  // Of the code point that begins at `offset`.
  size_t index_of(size_t offset) const;

 private:
  std::string bytes_;
  Marks marks_;
  bool is_markup_;
  size_t length_;
  Lease lease_;
};
using TextPtr = std::shared_ptr<const Text>;

// Puts a text together. Its size and memory are counted as it grows.
class TextBuilder {
 public:
  explicit TextBuilder(Budget& budget) : budget_(&budget), lease_(&budget) {}

  void add(std::string_view bytes, bool trusted = false);
  void add(const Text& text) { add(text, 0, text.size()); }
  void add(const Text& text, size_t begin, size_t end);
  size_t size() const { return bytes_.size(); }
  const std::string& bytes() const { return bytes_; }
  const Marks& marks() const { return marks_; }
  TextPtr finish(bool is_markup = false);

 private:
  void append(std::string_view bytes, bool trusted);
  void account(size_t bytes);

  Budget* budget_;
  std::string bytes_;
  Marks marks_;
  bool last_trusted_ = false;
  Lease lease_;
};

TextPtr make_text(Budget& budget, std::string_view bytes, bool trusted = false);
// A text of the template itself.
TextPtr template_text(std::string bytes);
// Bytes [begin, end), as markup if `text` is.
TextPtr cut(Budget& budget, const TextPtr& text, size_t begin, size_t end);
TextPtr as_markup(Budget& budget, const TextPtr& text, bool is_markup);

}  // namespace nibble::jinja
