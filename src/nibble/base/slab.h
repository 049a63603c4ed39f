// Many arrays in few large pieces of memory. Arrays of a megabyte or so that each came from the system would neither
// lie in huge pages to their ends nor, by the ten thousand, stay below the system's number of mappings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "nibble/base/aligned_bytes.h"

namespace nibble {

// An array that lies in a slab, or in memory of its own. Copies share it; the memory goes when the last array of its
// slab has gone.
class SharedBytes {
 public:
  SharedBytes() = default;
  SharedBytes(AlignedBytes own)  // NOLINT(google-explicit-constructor): memory of its own is the plain case
      : SharedBytes(std::make_shared<const AlignedBytes>(std::move(own))) {}
  SharedBytes(std::shared_ptr<const AlignedBytes> slab, uint64_t offset, uint64_t size)
      : data_(slab->data() + offset), size_(size), slab_(std::move(slab)) {}

  std::byte* data() const { return data_; }
  uint64_t size() const { return size_; }

 private:
  explicit SharedBytes(std::shared_ptr<const AlignedBytes> own)
      : data_(own->data()), size_(own->size()), slab_(std::move(own)) {}

  std::byte* data_ = nullptr;
  uint64_t size_ = 0;
  std::shared_ptr<const AlignedBytes> slab_;
};

class Slab {
 public:
  // `bytes` of any content, aligned to 64. Thread-safe. std::bad_alloc if the memory cannot be had.
  SharedBytes take(uint64_t bytes);
  // What is taken from here on shares no memory with what was taken before, and does not keep it.
  void start_anew();

 private:
  std::mutex mutex_;
  std::shared_ptr<const AlignedBytes> current_;
  uint64_t used_ = 0;  // of it
};

}  // namespace nibble
