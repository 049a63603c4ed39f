// Long text files, in pieces: neither a writer nor a reader has the whole text in memory.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "nibble/base/file.h"

namespace nibble {

// Written from front to back; appears under its name with commit(), as an OutputFile does.
class TextFile {
 public:
  explicit TextFile(const Path& path) : file_(OutputFile::create(path)) {}
  void add(std::string_view text);
  // Puts `text` over the file's first bytes, which have been added: a head whose length is known before its content.
  void replace_head(std::string_view text);
  void commit();

 private:
  void write();

  OutputFile file_;
  std::string text_;  // not yet written
  uint64_t written_ = 0;
};

// Calls `visit` for every line, without its end.
void for_lines(const Path& path, const std::function<void(std::string_view line)>& visit);

}  // namespace nibble
