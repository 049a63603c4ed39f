// What can be wrong with a container beyond its content, told apart so that a scan can report each under its own rule.
// Both are Errors like any other to everybody else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "nibble/base/error.h"
#include "nibble/base/file.h"

namespace nibble {

// The file ends before what its header promises: cut, or still being written.
class ShortFileError : public Error {
 public:
  explicit ShortFileError(Error error) : Error(std::move(error)) {}
};

// The device or the system refused to hand over bytes that the file has.
class UnreadableFileError : public Error {
 public:
  explicit UnreadableFileError(Error error) : Error(std::move(error)) {}
};

// InputFile::read_at with its errors as UnreadableFileError.
inline void read_header_bytes(const InputFile& file, uint64_t offset, std::span<std::byte> out) {
  try {
    file.read_at(offset, out);
  } catch (const Error& error) {
    throw UnreadableFileError(error);
  }
}

}  // namespace nibble
