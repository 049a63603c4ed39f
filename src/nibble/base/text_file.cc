#include "nibble/base/text_file.h"

#include <algorithm>
#include <span>

namespace nibble {
namespace {

constexpr uint64_t kPieceBytes = uint64_t{1} << 20;

}  // namespace

void TextFile::add(std::string_view text) {
  text_ += text;
  if (text_.size() >= kPieceBytes) write();
}

void TextFile::replace_head(std::string_view text) {
  write();
  file_.write_at(0, std::as_bytes(std::span(text)));
}

void TextFile::commit() {
  write();
  file_.commit();
}

void TextFile::write() {
  file_.write_at(written_, std::as_bytes(std::span(text_)));
  written_ += text_.size();
  text_.clear();
}

void for_lines(const Path& path, const std::function<void(std::string_view line)>& visit) {
  const InputFile file = InputFile::open(path);
  std::string text;  // read, and not yet visited
  for (uint64_t offset = 0; offset < file.size();) {
    const size_t searched = text.size();
    text.resize(searched + std::min(kPieceBytes, file.size() - offset));
    const auto piece = std::span(text).subspan(searched);
    file.read_at(offset, std::as_writable_bytes(piece));
    offset += piece.size();
    size_t begin = 0;
    for (size_t end = text.find('\n', searched); end != std::string::npos; end = text.find('\n', begin)) {
      visit(std::string_view(text).substr(begin, end - begin));
      begin = end + 1;
    }
    text.erase(0, begin);
  }
  if (!text.empty()) visit(text);
}

}  // namespace nibble
