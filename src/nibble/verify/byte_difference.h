// Where bytes differ from those that were expected, and how much: pieces may come in any order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace nibble {

class ByteDifference {
 public:
  // `offset`: of both pieces, which are equally long.
  void add(uint64_t offset, std::span<const std::byte> expected, std::span<const std::byte> stored);
  // Two byte strings of different length: what only the longer one has differs.
  void add_lengths(uint64_t expected, uint64_t stored);

  uint64_t compared() const { return compared_; }
  uint64_t differing() const { return differing_; }
  // "3 of 128 bytes differ, the first at byte 17 (expected 0x12, stored 0x13)".
  std::string text(uint64_t of) const;
  // first_difference, expected, stored, differing, of.
  std::vector<std::pair<std::string, std::string>> values(uint64_t of) const;

 private:
  void note(uint64_t offset, int expected, int stored);

  uint64_t compared_ = 0, differing_ = 0, first_ = 0;
  int expected_ = -1, stored_ = -1;  // the bytes at first_; -1: that side ends there
};

// Fills all of `out` from `offset`.
using ReadAt = std::function<void(uint64_t offset, std::span<std::byte> out)>;
// Both read in pieces of 1 MiB.
ByteDifference compare_streams(const ReadAt& expected, uint64_t expected_bytes, const ReadAt& stored,
                               uint64_t stored_bytes);

}  // namespace nibble
