#include "nibble/base/aligned_bytes.h"

#include <sys/mman.h>

#include <new>

namespace nibble {
namespace {

constexpr uint64_t kSystem = uint64_t{1} << 20;  // from here on straight from the system
constexpr std::align_val_t kAlignment{64};

}  // namespace

AlignedBytes::AlignedBytes(uint64_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  if (bytes < kSystem) {
    data_ = static_cast<std::byte*>(::operator new(bytes, kAlignment));
    return;
  }
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) throw std::bad_alloc();
  madvise(at, bytes, MADV_HUGEPAGE);  // a wish; small pages do as well
  data_ = static_cast<std::byte*>(at);
}

AlignedBytes::~AlignedBytes() {
  if (data_ == nullptr) return;
  if (bytes_ < kSystem) {
    ::operator delete(data_, kAlignment);
  } else {
    munmap(data_, bytes_);
  }
}

}  // namespace nibble
