// Bytes to be overwritten: grows like a vector, but neither keeps nor clears its content.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace nibble {

class Buffer {
 public:
  // `bytes` bytes of any content. What earlier calls gave is gone.
  std::span<std::byte> get(uint64_t bytes) {
    if (bytes > capacity_) {
      bytes_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
      capacity_ = bytes;
    }
    return {bytes_.get(), bytes};
  }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  uint64_t capacity_ = 0;
};

}  // namespace nibble
