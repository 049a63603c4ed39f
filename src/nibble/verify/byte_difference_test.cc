#include "nibble/verify/byte_difference.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string_view>

#include "nibble/testing/thrown_error.h"

namespace nibble {
namespace {

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

ReadAt reader(const std::string& text) {
  return [&text](uint64_t offset, std::span<std::byte> out) {
    ASSERT_LE(offset + out.size(), text.size());
    std::memcpy(out.data(), text.data() + offset, out.size());
  };
}

std::string value(const ByteDifference& difference, std::string_view key) {
  return testing::value_of(difference.values(100), key);
}

TEST(ByteDifference, EqualBytes) {
  ByteDifference difference;
  difference.add(0, bytes("abc"), bytes("abc"));
  difference.add(3, {}, {});
  difference.add_lengths(3, 3);
  EXPECT_EQ(difference.compared(), 3u);
  EXPECT_EQ(difference.differing(), 0u);
}

TEST(ByteDifference, TheFirstByOffsetWhateverTheOrderOfThePieces) {
  ByteDifference difference;
  difference.add(50, bytes("abcd"), bytes("aXcY"));
  difference.add(10, bytes("pqr"), bytes("pqs"));
  difference.add(90, bytes("a"), bytes("b"));
  EXPECT_EQ(difference.compared(), 8u);
  EXPECT_EQ(difference.differing(), 4u);
  EXPECT_EQ(value(difference, "first_difference"), "12");
  EXPECT_EQ(value(difference, "expected"), "0x72");
  EXPECT_EQ(value(difference, "stored"), "0x73");
  EXPECT_EQ(value(difference, "differing"), "4");
  EXPECT_EQ(value(difference, "of"), "100");
  EXPECT_EQ(difference.text(100), "4 of 100 bytes differ, the first at byte 12 (expected 0x72, stored 0x73)");
}

TEST(ByteDifference, StreamsOfAnyLength) {
  const std::string a(3'000'000, 'a');
  std::string b = a;
  b[2'500'000] = 'b';
  const ByteDifference one = compare_streams(reader(a), a.size(), reader(b), b.size());
  EXPECT_EQ(one.compared(), a.size());
  EXPECT_EQ(one.differing(), 1u);
  EXPECT_EQ(value(one, "first_difference"), "2500000");
  const ByteDifference shorter = compare_streams(reader(a), a.size(), reader(a), 2'000'000);
  EXPECT_EQ(shorter.differing(), 1'000'000u);
  EXPECT_EQ(value(shorter, "first_difference"), "2000000");
  EXPECT_EQ(value(shorter, "stored"), "none");
  EXPECT_EQ(compare_streams(reader(a), 0, reader(a), 1).differing(), 1u);
}

}  // namespace
}  // namespace nibble
