#include "nibble/base/hash.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "nibble/base/rng.h"

namespace nibble {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

// FIPS 180-2, appendix B, and the empty message.
TEST(Sha256, PublishedVectors) {
  EXPECT_EQ(sha256_hex({}), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex(bytes_of("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex(bytes_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_hex(bytes_of(std::string(1'000'000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// Of the xxHash library's own sanity check.
TEST(Xxh3, PublishedVectors) {
  EXPECT_EQ(xxh3_hex({}), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(xxh3_hex(bytes_of("abc")), "06b05ab6733a618578af5f94892f3950");
}

template <typename Hash>
std::string in_pieces(std::span<const std::byte> bytes, uint64_t seed) {
  Hash hash;
  for (uint64_t draw = 0; !bytes.empty(); ++draw) {
    const size_t piece = std::min<size_t>(random_bits(seed, draw) % 700, bytes.size());
    hash.update(bytes.first(piece));
    bytes = bytes.subspan(piece);
  }
  return hash.hex();
}

TEST(Hash, PiecesDoNotMatter) {
  std::string text(10'000, '\0');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(random_bits(9, i));
  for (const size_t size : {1u, 16u, 17u, 128u, 129u, 240u, 241u, 256u, 1024u, 9'999u}) {
    const auto bytes = bytes_of(text).first(size);
    for (uint64_t seed = 0; seed < 5; ++seed) {
      EXPECT_EQ(in_pieces<Xxh3>(bytes, seed), xxh3_hex(bytes)) << size;
      EXPECT_EQ(in_pieces<Sha256>(bytes, seed), sha256_hex(bytes)) << size;
    }
  }
}

TEST(Hash, XxhMayBeReadInBetween) {
  Xxh3 hash;
  hash.update(bytes_of("ab"));
  EXPECT_EQ(hash.hex(), xxh3_hex(bytes_of("ab")));
  hash.update(bytes_of("c"));
  EXPECT_EQ(hash.hex(), xxh3_hex(bytes_of("abc")));
}

TEST(Hash, MovesCarryTheState) {
  Sha256 first;
  first.update(bytes_of("a"));
  Sha256 second = std::move(first);
  second.update(bytes_of("bc"));
  EXPECT_EQ(second.hex(), sha256_hex(bytes_of("abc")));
}

}  // namespace
}  // namespace nibble
