#include "nibble/base/slab.h"

namespace nibble {
namespace {

constexpr uint64_t kSlabBytes = uint64_t{256} << 20;  // pages that nobody writes are never there
constexpr uint64_t kAlignment = 64;

}  // namespace

SharedBytes Slab::take(uint64_t bytes) {
  // Half a slab and more is as well off alone.
  if (bytes >= kSlabBytes / 2) return AlignedBytes(bytes);
  const std::scoped_lock lock(mutex_);
  if (current_ == nullptr || current_->size() - used_ < bytes) {
    current_ = std::make_shared<const AlignedBytes>(kSlabBytes);
    used_ = 0;
  }
  SharedBytes taken(current_, used_, bytes);
  used_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  return taken;
}

void Slab::start_anew() {
  const std::scoped_lock lock(mutex_);
  current_ = nullptr;
  used_ = 0;
}

}  // namespace nibble
