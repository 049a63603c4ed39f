// Bytes to be overwritten: grows like a vector, but neither keeps nor clears its content.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

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

// A vector's elements that nobody gave a value stay as the memory was: resize(n) costs nothing, resize(n, value) fills.
template <typename T>
struct UnfilledAllocator : std::allocator<T> {
  template <typename U>
  void construct(U* at) noexcept {
    ::new (static_cast<void*>(at)) U;
  }
  template <typename U, typename... Values>
  void construct(U* at, Values&&... values) {
    ::new (static_cast<void*>(at)) U(std::forward<Values>(values)...);
  }
};
using UnfilledBytes = std::vector<std::byte, UnfilledAllocator<std::byte>>;

}  // namespace nibble
