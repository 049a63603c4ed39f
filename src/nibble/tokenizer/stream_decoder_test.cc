#include <gtest/gtest.h>

#include "nibble/tokenizer/tokenizer.h"
#include "nibble/tokenizer/utf8.h"

namespace nibble {
namespace {

// Ids 0 to 255 are bytes, 256 is a special token, 257 a control token that is shown.
class Bytes final : public Tokenizer {
 public:
  Bytes() {
    for (int byte = 0; byte < 256; ++byte) bytes_.emplace_back(1, static_cast<char>(byte));
    bytes_.emplace_back("<end>");
    bytes_.emplace_back("<think>");
  }
  std::vector<TokenId> encode_spans(const std::vector<TextSpan>&) const override { return {}; }
  std::string_view bytes_of(TokenId id) const override { return bytes_[static_cast<size_t>(id)]; }
  bool is_control(TokenId id) const override { return id >= 256; }
  bool is_special(TokenId id) const override { return id == 256; }
  TokenId size() const override { return static_cast<TokenId>(bytes_.size()); }
  std::optional<TokenId> find_added(std::string_view) const override { return std::nullopt; }
  const std::vector<TokenId>& prefix() const override { return none_; }
  const std::vector<TokenId>& suffix() const override { return none_; }

 private:
  std::vector<std::string> bytes_;
  std::vector<TokenId> none_;
};

std::vector<TokenId> ids_of(std::string_view bytes) {
  std::vector<TokenId> ids;
  ids.reserve(bytes.size());
  for (const char byte : bytes) ids.push_back(static_cast<uint8_t>(byte));
  return ids;
}

TEST(StreamDecoder, GivesACharacterWhenItIsWhole) {
  const Bytes bytes;
  StreamDecoder decoder(bytes);
  EXPECT_EQ(decoder.push(0xF0), "");
  EXPECT_EQ(decoder.push(0x9F), "");
  EXPECT_EQ(decoder.push(0x98), "");
  EXPECT_EQ(decoder.push(0x80), "😀");
  EXPECT_EQ(decoder.push('a'), "a");
  EXPECT_EQ(decoder.finish(), "");
}

TEST(StreamDecoder, ReplacesWhatCanNoLongerBecomeACharacter) {
  const Bytes bytes;
  StreamDecoder decoder(bytes);
  EXPECT_EQ(decoder.push(0xE2), "");
  EXPECT_EQ(decoder.push(0x82), "");
  EXPECT_EQ(decoder.push('a'), "\uFFFDa");
  EXPECT_EQ(decoder.push(0x80), "\uFFFD");
  EXPECT_EQ(decoder.push(0xC3), "");
  EXPECT_EQ(decoder.finish(), "\uFFFD");
  EXPECT_EQ(decoder.finish(), "");
}

// Python: bytes.fromhex(…).decode("utf-8", errors="replace").
TEST(StreamDecoder, ReplacesAsPythonDoes) {
  const Bytes bytes;
  const auto decoded = [&](std::string_view text) { return decode_tokens(bytes, ids_of(text)); };
  const std::string r = "\uFFFD";
  EXPECT_EQ(decoded("\xC0\xAF"), r + r);
  EXPECT_EQ(decoded("\xED\xA0\x80"), r + r + r);
  EXPECT_EQ(decoded("\xF0\x9F\x98"
                    "a"),
            r + "a");
  EXPECT_EQ(decoded("\xF4\x90\x80\x80"), r + r + r + r);
  EXPECT_EQ(decoded("\xE2\x82\xE2\x82\xAC"), r + "€");
  EXPECT_EQ(decoded("\xF0\x9F\x98\xF0\x9F\x98\x81"), r + "😁");
  EXPECT_EQ(decoded("a\xFF\xFE"
                    "b"),
            "a" + r + r + "b");
}

TEST(StreamDecoder, AStreamIsTheTextInPieces) {
  const Bytes bytes;
  const std::string text = "aé€😀\xF0\x9F\xC3\xE2\x82z\xED\xA0\x80\xF4";
  StreamDecoder decoder(bytes);
  std::string pieces;
  for (const TokenId id : ids_of(text)) pieces += decoder.push(id);
  EXPECT_EQ(pieces + decoder.finish(), replace_broken_utf8(text));
}

TEST(StreamDecoder, LeavesOutSpecialTokensAndIdsThatAreNone) {
  const Bytes bytes;
  EXPECT_EQ(decode_tokens(bytes, {'a', 256, 257, 'b', 258, -1, 1 << 30}), "a<think>b");
  EXPECT_EQ(decode_tokens(bytes, {'a', 256, 257, 'b'}, true), "a<end><think>b");
  // What is left out does not stand between the bytes of a character; what is shown does.
  EXPECT_EQ(decode_tokens(bytes, {0xC3, 256, 0xA9}), "é");
  EXPECT_EQ(decode_tokens(bytes, {0xC3, 256, 0xA9}, true), "\uFFFD<end>\uFFFD");
}

}  // namespace
}  // namespace nibble
