// Little-endian values from the front of a GGUF file. Every length is compared with the bytes that remain in the file
// before anything is allocated or read. The header's size is not known beforehand, so a file is read on in pieces as
// the cursor needs them.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "nibble/base/error.h"
#include "nibble/base/file.h"

namespace nibble {

class GgufReader {
 public:
  // All of `head` at hand, nothing to read on from.
  GgufReader(std::span<const std::byte> head, uint64_t file_bytes, const std::string& file_name)
      : head_(head), file_bytes_(file_bytes), name_(file_name) {}
  // Reads from `file`, which must outlive the reader.
  explicit GgufReader(const InputFile& file);

  uint64_t position() const { return at_; }
  uint64_t remaining() const { return file_bytes_ - at_; }
  uint64_t file_bytes() const { return file_bytes_; }
  const std::string& name() const { return name_; }

  template <typename T>
    requires std::is_arithmetic_v<T>
  T number(const char* what) {
    need(sizeof(T), what);
    T value{};
    std::memcpy(&value, head_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }
  // u64 length and bytes; the view lasts until the next read.
  std::string_view string(const char* what);
  // A count of things that take at least `smallest` bytes each.
  uint64_t count(const char* what, uint64_t smallest);

 private:
  void need(uint64_t bytes, const char* what);

  std::span<const std::byte> head_;
  uint64_t file_bytes_;
  std::string name_;
  uint64_t at_ = 0;
  const InputFile* file_ = nullptr;
  std::vector<std::byte> buffer_;  // what head_ shows, when reading from a file without a mapping
};

}  // namespace nibble
