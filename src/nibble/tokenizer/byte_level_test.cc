#include "nibble/tokenizer/byte_level.h"

#include <gtest/gtest.h>

namespace nibble {
namespace {

TEST(ByteLevel, IsGpt2sAlphabet) {
  EXPECT_EQ(symbols_of_bytes(" a\n~"), "ĠaĊ~");
  EXPECT_EQ(symbols_of_bytes("é"), "Ã©");
  EXPECT_EQ(symbols_of_bytes(std::string("\0\x7F\xA0\xAD\xFF", 5)), "ĀġłŃÿ");
}

TEST(ByteLevel, GoesBothWaysForEveryByte) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string one(1, static_cast<char>(byte));
    EXPECT_EQ(bytes_of_symbols(symbols_of_bytes(one)), one) << byte;
  }
}

TEST(ByteLevel, OtherCharactersStandForNoByte) {
  for (const char* symbols : {" ", "\n", "ń", "中", "a▁b", "\xC2\xAD"})
    EXPECT_EQ(bytes_of_symbols(symbols), std::nullopt) << symbols;
}

}  // namespace
}  // namespace nibble
