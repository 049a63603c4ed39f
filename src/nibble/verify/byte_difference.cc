#include "nibble/verify/byte_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "nibble/base/strings.h"

namespace nibble {
namespace {

std::string byte_text(int byte) { return byte < 0 ? "none" : fmt::format("0x{:02x}", byte); }

}  // namespace

void ByteDifference::note(uint64_t offset, int expected, int stored) {
  if (differing_ > 0 && offset > first_) return;
  first_ = offset;
  expected_ = expected;
  stored_ = stored;
}

void ByteDifference::add(uint64_t offset, std::span<const std::byte> expected, std::span<const std::byte> stored) {
  compared_ += expected.size();
  if (expected.empty() || std::memcmp(expected.data(), stored.data(), expected.size()) == 0) return;
  for (size_t i = 0; i < expected.size(); ++i) {
    if (expected[i] == stored[i]) continue;
    note(offset + i, std::to_integer<int>(expected[i]), std::to_integer<int>(stored[i]));
    ++differing_;
  }
}

void ByteDifference::add_lengths(uint64_t expected, uint64_t stored) {
  if (expected == stored) return;
  note(std::min(expected, stored), -1, -1);
  differing_ += std::max(expected, stored) - std::min(expected, stored);
}

std::string ByteDifference::text(uint64_t of) const {
  return fmt::format("{} of {} bytes differ, the first at byte {} (expected {}, stored {})", with_commas(differing_),
                     with_commas(of), with_commas(first_), byte_text(expected_), byte_text(stored_));
}

std::vector<std::pair<std::string, std::string>> ByteDifference::values(uint64_t of) const {
  return {{"first_difference", std::to_string(first_)},
          {"expected", byte_text(expected_)},
          {"stored", byte_text(stored_)},
          {"differing", std::to_string(differing_)},
          {"of", std::to_string(of)}};
}

ByteDifference compare_streams(const ReadAt& expected, uint64_t expected_bytes, const ReadAt& stored,
                               uint64_t stored_bytes) {
  constexpr uint64_t kPiece = uint64_t{1} << 20;
  const uint64_t common = std::min(expected_bytes, stored_bytes);
  std::vector<std::byte> a(std::min(kPiece, common));
  std::vector<std::byte> b(a.size());
  ByteDifference difference;
  for (uint64_t at = 0; at < common; at += kPiece) {
    const uint64_t bytes = std::min(kPiece, common - at);
    expected(at, std::span(a).first(bytes));
    stored(at, std::span(b).first(bytes));
    difference.add(at, std::span(a).first(bytes), std::span(b).first(bytes));
  }
  difference.add_lengths(expected_bytes, stored_bytes);
  return difference;
}

}  // namespace nibble
