#include "nibble/checkpoint/dtype.h"

#include <gtest/gtest.h>

#include <string>

namespace nibble {
namespace {

TEST(Dtype, NamesAndBitsInTheReferenceOrder) {
  const std::pair<const char*, uint64_t> expected[] = {
      {"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6},     {"U8", 8},          {"I8", 8},
      {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},
      {"U16", 16},    {"F16", 16},    {"BF16", 16},   {"I32", 32},        {"U32", 32},        {"F32", 32},
      {"C64", 64},    {"F64", 64},    {"I64", 64},    {"U64", 64}};
  uint8_t rank = 0;
  for (const auto& [name, bits] : expected) {
    const auto dtype = static_cast<Dtype>(rank++);
    EXPECT_EQ(dtype_name(dtype), name);
    EXPECT_EQ(dtype_bits(dtype), bits) << name;
    EXPECT_EQ(parse_dtype(name), dtype) << name;
  }
  EXPECT_EQ(static_cast<Dtype>(rank), Dtype::kGgufBlock);
  EXPECT_EQ(dtype_bits(Dtype::kGgufBlock), 0u);
}

TEST(Dtype, OnlyTheContainersOwnSpellingsParse) {
  for (const char* name : {"", "f32", "F33", "BF16 ", "F6_X", "float32", "GGUF_BLOCK", "F4_E2M1"})
    EXPECT_FALSE(parse_dtype(name)) << name;
}

TEST(Dtype, DenseElementsAndBack) {
  int dense = 0;
  for (uint8_t i = 0; i <= static_cast<uint8_t>(Dtype::kGgufBlock); ++i) {
    const auto dtype = static_cast<Dtype>(i);
    const auto element = dense_element(dtype);
    if (!element) continue;
    ++dense;
    EXPECT_EQ(dtype_of(*element), dtype);
  }
  EXPECT_EQ(dense, 6);
  EXPECT_EQ(dense_element(Dtype::kBF16), Element::kBF16);
  EXPECT_EQ(dense_element(Dtype::kF8E4M3), Element::kE4M3);
  EXPECT_FALSE(dense_element(Dtype::kF8E8M0));
  EXPECT_FALSE(dense_element(Dtype::kF4));
}

}  // namespace
}  // namespace nibble
