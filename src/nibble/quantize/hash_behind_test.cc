#include "nibble/quantize/hash_behind.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <numeric>

#include "nibble/base/error.h"
#include "nibble/base/parallel.h"
#include "nibble/base/rng.h"
#include "nibble/testing/faulty_syscalls.h"
#include "nibble/testing/temp_dir.h"
#include "nibble/testing/thrown_error.h"

namespace nibble {
namespace {

std::vector<std::byte> random_content(uint64_t bytes) {
  std::vector<std::byte> content(bytes);
  for (uint64_t i = 0; i < bytes; i += 8) {
    const uint64_t bits = random_bits(5, i);
    std::memcpy(content.data() + i, &bits, std::min<uint64_t>(8, bytes - i));
  }
  return content;
}

// Writes `content` in pieces of `piece` bytes, in an order that `seed` shuffles (0: front to back).
std::string hash_of_writes(const std::vector<std::byte>& content, uint64_t piece, uint64_t seed, int threads) {
  const testing::TempDir dir;
  OutputFile file = OutputFile::create(dir / "file", content.size());
  HashBehind hash(file, content.size());
  std::vector<uint64_t> order((content.size() + piece - 1) / piece);
  std::iota(order.begin(), order.end(), uint64_t{0});
  for (size_t i = order.size(); seed != 0 && i > 1; --i) std::swap(order[i - 1], order[random_bits(seed, i) % i]);
  parallel_for(order.size(), threads, [&](uint64_t i) {
    const uint64_t begin = order[i] * piece;
    const auto bytes = std::span(content).subspan(begin, std::min(piece, content.size() - begin));
    file.write_at(begin, bytes);
    hash.written(begin, bytes);
    if (i % 7 == 0) hash.advance(false);
  });
  hash.advance(true);
  EXPECT_EQ(hash.hashed(), content.size());
  file.commit();
  return hash.hex();
}

TEST(HashBehind, AnyOrderAndThreadsGiveTheHashOfTheFile) {
  // More than what is left unsettled, and no multiple of a window.
  const auto content = random_content((uint64_t{100} << 20) + 12345);
  const std::string expected = sha256_hex(content);
  EXPECT_EQ(hash_of_writes(content, 300'000, 0, 1), expected);
  EXPECT_EQ(hash_of_writes(content, 300'001, 1, 1), expected);
  EXPECT_EQ(hash_of_writes(content, 300'001, 2, 4), expected);
  EXPECT_EQ(hash_of_writes(content, uint64_t{20} << 20, 3, 2), expected);
}

TEST(HashBehind, ShortFiles) {
  for (const uint64_t bytes : {1u, 7u, 4096u}) {
    const auto content = random_content(bytes);
    EXPECT_EQ(hash_of_writes(content, 3, 4, 2), sha256_hex(content));
  }
}

// fsync need not repeat an error that was told once.
TEST(HashBehind, AnErrorOfTheDiskIsNotLost) {
  const testing::TempDir dir;
  const auto content = random_content(uint64_t{16} << 20);
  OutputFile file = OutputFile::create(dir / "file", content.size());
  HashBehind hash(file, content.size());
  file.write_at(0, content);
  const testing::FaultySyscalls faults(1, EIO, false, testing::Calls::kSyncRange);
  const Error error = testing::thrown_error([&] { hash.written(0, content); });
  EXPECT_NE(error.message().find("cannot write to the disk"), std::string::npos);
}

}  // namespace
}  // namespace nibble
