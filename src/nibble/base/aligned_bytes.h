// Memory that is overwritten before it is read: large arrays of weights and caches, aligned for vectors. Large ones
// come straight from the system, in huge pages where it gives them, and go back to it at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace nibble {

class AlignedBytes {
 public:
  AlignedBytes() = default;
  // std::bad_alloc if the memory cannot be had. Aligned to 64, of any content.
  explicit AlignedBytes(uint64_t bytes);
  AlignedBytes(AlignedBytes&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  AlignedBytes& operator=(AlignedBytes&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~AlignedBytes();

  std::byte* data() const { return data_; }
  uint64_t size() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace nibble
