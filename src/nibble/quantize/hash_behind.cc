#include "nibble/quantize/hash_behind.h"

#include <algorithm>

#include "nibble/base/check.h"
#include "nibble/base/checked_math.h"

namespace nibble {
namespace {

// Small enough to be read back into the second-level cache.
constexpr uint64_t kHashChunk = uint64_t{1} << 20;
constexpr uint64_t kWindow = uint64_t{8} << 20;
// Behind the hash, what the disk may still be busy with.
constexpr uint64_t kUnsettledBytes = uint64_t{64} << 20;

}  // namespace

HashBehind::HashBehind(OutputFile& file, uint64_t bytes)
    : file_(file), bytes_(bytes), filled_(ceil_div(bytes, kWindow)), buffer_(kHashChunk) {}

void HashBehind::written(uint64_t begin, std::span<const std::byte> bytes) {
  const uint64_t end = begin + bytes.size();
  std::vector<uint64_t> full;
  {
    const std::scoped_lock lock(mutex_);
    add_range(begin, end);
    fill_windows(begin, end, &full);
  }
  for (const uint64_t window : full) file_.start_flush(window * kWindow, kWindow);
  const std::unique_lock busy(hashing_, std::try_to_lock);
  if (!busy || done_ > begin) return;
  // A little that others left in front of it is cheaper to read back than all of it later.
  if (begin - done_ > kHashChunk || complete() < begin) return;
  if (begin > done_) read_back(begin - done_);
  hash_.update(bytes);
  done_ = end;
  settle_behind();
}

void HashBehind::advance(bool all) {
  std::unique_lock busy(hashing_, std::defer_lock);
  if (all) {
    busy.lock();
  } else if (!busy.try_lock()) {
    return;
  }
  for (uint64_t ready = complete(); ready - done_ >= (all ? 1 : kHashChunk); ready = complete()) {
    read_back(std::min(kHashChunk, ready - done_));
    settle_behind();
  }
}

void HashBehind::read_back(uint64_t bytes) {
  const std::span chunk(buffer_.data(), bytes);
  file_.read_at(done_, chunk);
  hash_.update(chunk);
  done_ += bytes;
}

// Joins the range with its neighbours.
void HashBehind::add_range(uint64_t begin, uint64_t end) {
  NIBBLE_CHECK(end <= bytes_);
  auto next = ranges_.lower_bound(begin);
  NIBBLE_CHECK(next == ranges_.end() || next->first >= end);
  if (next != ranges_.end() && next->first == end) {
    end = next->second;
    next = ranges_.erase(next);
  }
  if (next != ranges_.begin()) {
    const auto before = std::prev(next);
    NIBBLE_CHECK(before->second <= begin);
    if (before->second == begin) {
      before->second = end;
      return;
    }
  }
  ranges_.emplace(begin, end);
}

// Whole windows only: the last, shorter one is left to the final sync.
void HashBehind::fill_windows(uint64_t begin, uint64_t end, std::vector<uint64_t>* full) {
  while (begin < end) {
    const uint64_t window = begin / kWindow;
    const uint64_t part = std::min(end, (window + 1) * kWindow) - begin;
    filled_[window] += static_cast<uint32_t>(part);
    if (filled_[window] == kWindow) full->push_back(window);
    begin += part;
  }
}

void HashBehind::settle_behind() {
  for (; done_ >= settled_ + kUnsettledBytes + kWindow; settled_ += kWindow) file_.settle(settled_, kWindow);
}

uint64_t HashBehind::complete() {
  const std::scoped_lock lock(mutex_);
  return ranges_.empty() || ranges_.begin()->first != 0 ? 0 : ranges_.begin()->second;
}

}  // namespace nibble
