#include "nibble/checkpoint/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "nibble/checkpoint/container_error.h"
#include "nibble/testing/temp_dir.h"
#include "nibble/testing/thrown_error.h"

namespace nibble {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::thrown_error;
using testing::value_of;

// Writes headers value by value.
struct Bytes {
  std::string text;
  template <typename T>
  Bytes& put(T value) {
    text.append(reinterpret_cast<const char*>(&value), sizeof(T));
    return *this;
  }
  Bytes& string(const std::string& s) {
    put<uint64_t>(s.size());
    text += s;
    return *this;
  }
  Bytes& key(const std::string& name, uint32_t type) { return string(name).put(type); }
  Bytes& tensor(const std::string& name, const std::vector<uint64_t>& dims, uint32_t type, uint64_t offset) {
    string(name).put<uint32_t>(static_cast<uint32_t>(dims.size()));
    for (const uint64_t dim : dims) put(dim);
    return put(type).put(offset);
  }
  // Pads to the alignment, then adds data.
  Bytes& data(uint64_t bytes, uint64_t alignment = 32) {
    text.resize((text.size() + alignment - 1) / alignment * alignment + bytes, '\0');
    return *this;
  }
};

Bytes start(uint64_t tensors, uint64_t pairs, uint32_t version = 3) {
  Bytes bytes;
  bytes.text = "GGUF";
  return bytes.put(version).put(tensors).put(pairs);
}

GgufFile parse(const std::string& text, uint64_t file_bytes) {
  return parse_gguf(std::as_bytes(std::span(text)), file_bytes, "m.gguf");
}
GgufFile parse(const Bytes& bytes) { return parse(bytes.text, bytes.text.size()); }
Error refusal(const Bytes& bytes) {
  return thrown_error([&] { parse(bytes); });
}

// tests/golden/checkpoint/make_containers.py wrote the file with gguf 0.19.0.
TEST(Gguf, FileOfTheReferenceWriter) {
  for (const ReadMode mode : {ReadMode::kPread, ReadMode::kMmap}) {
    const GgufFile file = read_gguf(InputFile::open(testing::golden_dir() / "checkpoint" / "reference.gguf", mode));
    EXPECT_EQ(file.version, 3u);
    EXPECT_EQ(file.alignment, 32u);
    ASSERT_EQ(file.metadata.size(), 11u);
    EXPECT_EQ(file.metadata[0].first, "general.architecture");
    EXPECT_EQ(file.get_string("general.architecture"), "llama");
    EXPECT_EQ(file.get_uint("test.u8"), 200u);
    EXPECT_EQ(std::get<int64_t>(file.find("test.i8")->value), -5);
    EXPECT_EQ(std::get<int64_t>(file.find("test.i32")->value), -70000);
    EXPECT_EQ(file.get_uint("test.u64"), uint64_t{1} << 40);
    EXPECT_EQ(file.get_double("test.f32"), 0.5);
    EXPECT_EQ(file.get_double("test.f64"), 0.1);
    EXPECT_EQ(file.get_bool("test.bool"), true);
    EXPECT_EQ(file.get_string("test.string"), "vi\xC3\xAB");
    const auto& strings = std::get<GgufValue::Array>(file.find("test.strings")->value);
    ASSERT_EQ(strings.size(), 3u);
    EXPECT_EQ(std::get<std::string>(strings[2].value), "\xC3\xBC");
    EXPECT_EQ(std::get<GgufValue::Array>(file.find("test.numbers")->value).size(), 3u);
    ASSERT_EQ(file.tensors.size(), 3u);
    EXPECT_EQ(file.tensors[0].name, "token_embd.weight");
    EXPECT_EQ(file.tensors[0].dtype, Dtype::kF32);
    EXPECT_THAT(file.tensors[0].shape, ElementsAre(2u, 3u));
    EXPECT_EQ(file.tensors[0].offset, 0x220u);
    EXPECT_EQ(file.tensors[1].dtype, Dtype::kF16);
    EXPECT_EQ(file.tensors[1].offset, 0x240u);
    EXPECT_EQ(file.tensors[2].dtype, Dtype::kGgufBlock);
    EXPECT_EQ(file.tensors[2].gguf_type, 2u);
    EXPECT_THAT(file.tensors[2].shape, ElementsAre(2u, 64u));
    EXPECT_EQ(file.tensors[2].offset, 0x260u);
    EXPECT_EQ(file.tensors[2].bytes, 72u);
    EXPECT_EQ(file.data_begin, 0x220u);
    EXPECT_EQ(file.data_end, 0x260u + 72);
  }
}

TEST(Gguf, TypedAccessRefusesOtherTypes) {
  const GgufFile file =
      parse(start(0, 3).key("n", 5).put<int32_t>(-1).key("s", 8).string("x").key("i", 5).put<int32_t>(7));
  EXPECT_EQ(file.get_uint("i"), 7u);
  EXPECT_FALSE(file.get_uint("absent"));
  EXPECT_FALSE(file.get_string("absent"));
  const Error negative = thrown_error([&] { (void)file.get_uint("n"); });
  EXPECT_EQ(value_of(negative, "key"), "n");
  EXPECT_EQ(negative.file(), "m.gguf");
  EXPECT_EQ(thrown_error([&] { (void)file.get_string("n"); }).message(), "`n` should be a string");
  EXPECT_EQ(thrown_error([&] { (void)file.get_double("s"); }).message(), "`s` should be a floating-point number");
  EXPECT_EQ(thrown_error([&] { (void)file.get_bool("s"); }).message(), "`s` should be true or false");
}

TEST(Gguf, VersionsAndByteOrders) {
  EXPECT_EQ(parse(start(0, 0, 2)).version, 2u);
  for (const uint32_t version : {0u, 1u, 4u, 99u}) {
    const Error error = refusal(start(0, 0, version));
    if (version == 0) {
      EXPECT_EQ(error.message(), "a big-endian GGUF file; nibble reads little-endian ones");
    } else {
      EXPECT_EQ(error.message(), "a GGUF version that nibble does not read");
      EXPECT_EQ(value_of(error, "version"), std::to_string(version));
    }
  }
  const Error swapped = refusal(start(0, 0, 0x03000000));
  EXPECT_EQ(swapped.message(), "a big-endian GGUF file; nibble reads little-endian ones");
  EXPECT_EQ(value_of(swapped, "version"), "3");
  Bytes magic = start(0, 0, 0x03000000);
  magic.text.replace(0, 4, "FUGG");
  EXPECT_EQ(refusal(magic).message(), swapped.message());
  magic.text.replace(0, 4, "GGML");
  EXPECT_EQ(refusal(magic).message(), "not a GGUF file: it does not begin with `GGUF`");
  EXPECT_EQ(value_of(refusal(magic), "first_bytes"), "47474d4c");
}

TEST(Gguf, C119_element_count_wraps) {
  const Error first = refusal(start(1, 0).tensor("w", {4194304, 4398046511105}, 0, 0).data(64));
  EXPECT_EQ(first.message(), "the product of the dimensions does not fit 64 bits");
  EXPECT_EQ(first.tensor(), "w");
  EXPECT_EQ(value_of(first, "dims"), "[4194304, 4398046511105]");
  const Error second = refusal(start(1, 0).tensor("w", {uint64_t{1} << 32, uint64_t{1} << 32}, 24, 0).data(64));
  EXPECT_EQ(second.tensor(), "w");
  EXPECT_EQ(value_of(second, "dims"), "[4294967296, 4294967296]");
  // In elements it fits, in bytes it does not.
  EXPECT_EQ(refusal(start(1, 0).tensor("w", {uint64_t{1} << 61}, 28, 0)).message(), first.message());
  EXPECT_EQ(refusal(start(1, 0).tensor("w", {uint64_t{1} << 63}, 24, 0)).message(), first.message());
}

TEST(Gguf, C121_zero_dimension_and_empty_key) {
  const Error zero = refusal(start(1, 0).tensor("w", {0}, 2, 0).data(0));
  EXPECT_EQ(zero.message(), "a dimension of 0");
  EXPECT_EQ(zero.tensor(), "w");
  EXPECT_EQ(value_of(zero, "dims"), "[0]");
  EXPECT_EQ(refusal(start(1, 0).tensor("w", {32, 0, 2}, 2, 0)).message(), "a dimension of 0");
  const Error empty = refusal(start(0, 1).key("", 4).put<uint32_t>(1).data(32));
  EXPECT_EQ(empty.message(), "an empty key");
  EXPECT_EQ(value_of(empty, "offset"), "24");
  const Error block = refusal(start(1, 0).tensor("w", {48, 2}, 2, 0).data(128));
  EXPECT_EQ(block.message(), "the first dimension is not a multiple of the type's block");
  EXPECT_EQ(value_of(block, "block"), "32");
  EXPECT_EQ(value_of(block, "dims"), "[48, 2]");
}

TEST(Gguf, C123_string_longer_than_the_file) {
  const Error value = refusal(start(0, 1).key("k", 8).put<uint64_t>(uint64_t{1} << 30).data(96));
  EXPECT_EQ(value_of(value, "needed_bytes"), "1073741824");
  EXPECT_EQ(value_of(value, "remaining_bytes"), "115");
  EXPECT_EQ(value_of(value, "key"), "k");
  const Error key = refusal(start(0, 1).put<uint64_t>(UINT64_MAX).data(96));
  EXPECT_EQ(value_of(key, "needed_bytes"), "18446744073709551615");
  EXPECT_EQ(value_of(refusal(start(1, 0).put<uint64_t>(uint64_t{1} << 40).data(96)), "needed_bytes"), "1099511627776");
}

TEST(Gguf, C123_counts_larger_than_the_file) {
  const Error array = refusal(start(0, 1).key("k", 9).put<uint32_t>(0).put<uint64_t>(uint64_t{1} << 30).data(96));
  EXPECT_EQ(array.message(), "a count in the header is larger than the file could hold");
  EXPECT_EQ(value_of(array, "count"), "1073741824");
  EXPECT_EQ(value_of(refusal(start(uint64_t{1} << 60, 0).data(96)), "counting"), "the number of tensors");
  EXPECT_EQ(value_of(refusal(start(0, UINT64_MAX).data(96)), "counting"), "the number of key/value pairs");
  // 12 u64 need 96 bytes and there are 95.
  const Error close = refusal([] {
    Bytes bytes = start(0, 1).key("k", 9).put<uint32_t>(10).put<uint64_t>(12);
    bytes.text.resize(bytes.text.size() + 95);
    return bytes;
  }());
  EXPECT_EQ(value_of(close, "remaining_bytes"), "95");
}

TEST(Gguf, C123_nesting) {
  const auto nested = [](int depth) {
    Bytes bytes = start(0, 1).key("k", 9);
    for (int i = 1; i < depth; ++i) bytes.put<uint32_t>(9).put<uint64_t>(1);
    return bytes.put<uint32_t>(0).put<uint64_t>(1).put<uint8_t>(7).data(64);
  };
  const GgufFile four = parse(nested(4));
  const GgufValue* value = four.find("k");
  for (int i = 0; i < 4; ++i) value = &std::get<GgufValue::Array>(value->value).at(0);
  EXPECT_EQ(std::get<uint64_t>(value->value), 7u);
  const Error five = refusal(nested(5));
  EXPECT_EQ(five.message(), "arrays nested too deeply");
  EXPECT_EQ(value_of(five, "limit"), "4");
  EXPECT_EQ(value_of(five, "key"), "k");
  EXPECT_EQ(refusal(nested(100'000)).message(), "arrays nested too deeply");
}

TEST(Gguf, C123_array_values_are_bounded_in_all) {
  Bytes bytes = start(0, 1).key("k", 9).put<uint32_t>(0).put<uint64_t>(kMaxGgufElements + 1);
  bytes.text.resize(bytes.text.size() + kMaxGgufElements + 1);
  EXPECT_EQ(value_of(refusal(bytes), "limit"), std::to_string(kMaxGgufElements));
}

TEST(Gguf, NamesKeysAndTypes) {
  EXPECT_EQ(value_of(refusal(start(0, 2).key("k", 0).put<uint8_t>(1).key("k", 0).put<uint8_t>(1)), "key"), "k");
  EXPECT_EQ(value_of(refusal(start(0, 1).key("k", 13).data(32)), "type"), "13");
  EXPECT_EQ(value_of(refusal(start(0, 1).key("k", 9).put<uint32_t>(13).put<uint64_t>(0)), "type"), "13");
  EXPECT_EQ(value_of(refusal(start(0, 1).key("k", 7).put<uint8_t>(2)), "byte"), "2");
  const Error twice = refusal(start(2, 0).tensor("w", {8}, 0, 0).tensor("w", {8}, 0, 32).data(64));
  EXPECT_EQ(twice.message(), "a tensor stands twice in one header");
  EXPECT_EQ(twice.tensor(), "w");
  EXPECT_EQ(value_of(twice, "second_offset"), "32");
  EXPECT_EQ(parse(start(1, 0).tensor(std::string(63, 'n'), {8}, 0, 0).data(32)).tensors.size(), 1u);
  EXPECT_EQ(value_of(refusal(start(1, 0).tensor(std::string(64, 'n'), {8}, 0, 0).data(32)), "name_bytes"), "64");
  EXPECT_EQ(value_of(refusal(start(1, 0).tensor("", {8}, 0, 0).data(32)), "name_bytes"), "0");
  EXPECT_THAT(refusal(start(1, 0).tensor("\xFF", {8}, 0, 0).data(32)).message(), HasSubstr("not UTF-8"));
  const Error unknown = refusal(start(1, 0).tensor("w", {8}, 99, 0).data(32));
  EXPECT_EQ(unknown.tensor(), "w");
  EXPECT_EQ(value_of(unknown, "type"), "99");
  EXPECT_EQ(refusal(start(1, 0).tensor("w", {8}, 31, 0).data(32)).message(),
            "the type `Q4_0_4_4`, which ggml has removed");
  EXPECT_EQ(value_of(refusal(start(1, 0).tensor("w", {1, 1, 1, 1, 1}, 0, 0).data(32)), "dimensions"), "5");
  EXPECT_EQ(parse(start(1, 0).tensor("w", {}, 0, 0).data(4)).tensors[0].bytes, 4u);
}

TEST(Gguf, OffsetsAreTheRunningPaddedSum) {
  const GgufFile file = parse(start(2, 0).tensor("a", {3}, 0, 0).tensor("b", {3}, 0, 32).data(44));
  EXPECT_EQ(file.tensors[1].offset - file.tensors[0].offset, 32u);
  for (const uint64_t offset : {0u, 12u, 31u, 64u}) {
    const Error error = refusal(start(2, 0).tensor("a", {3}, 0, 0).tensor("b", {3}, 0, offset).data(128));
    EXPECT_EQ(error.tensor(), "b");
    EXPECT_EQ(value_of(error, "offset"), std::to_string(offset));
    EXPECT_EQ(value_of(error, "expected"), "32");
  }
  EXPECT_EQ(value_of(refusal(start(1, 0).tensor("a", {3}, 0, 32).data(128)), "expected"), "0");
}

TEST(Gguf, AlignmentIsAPowerOfTwo) {
  const auto with = [](uint32_t alignment) {
    return start(2, 1).key("general.alignment", 4).put(alignment).tensor("a", {1}, 0, 0).tensor("b", {1}, 0, alignment);
  };
  const GgufFile file = parse(with(64).data(68, 64));
  EXPECT_EQ(file.alignment, 64u);
  EXPECT_EQ(file.tensors[0].offset % 64, 0u);
  EXPECT_EQ(file.tensors[1].offset, file.tensors[0].offset + 64);
  for (const uint32_t alignment : {0u, 3u, 48u, 0xFFFFFFFFu})
    EXPECT_EQ(value_of(refusal(with(alignment).data(256)), "general.alignment"), std::to_string(alignment));
  EXPECT_EQ(value_of(refusal(start(0, 1).key("general.alignment", 8).string("32")), "key"), "general.alignment");
}

TEST(Gguf, DataMustFitTheFile) {
  Bytes bytes = start(1, 0).tensor("w", {64}, 2, 0).data(36);
  EXPECT_EQ(parse(bytes).missing_bytes, 0u);
  bytes.text.pop_back();
  const Error cut = refusal(bytes);
  EXPECT_EQ(cut.tensor(), "w");
  EXPECT_EQ(value_of(cut, "missing_bytes"), "1");
  EXPECT_EQ(value_of(cut, "needed_bytes"), std::to_string(bytes.text.size() + 1));
  EXPECT_THROW(parse(bytes), ShortFileError);
}

TEST(Gguf, SplitModelsAreRefusedByName) {
  const Error error = refusal(start(0, 2).key("split.no", 2).put<uint16_t>(1).key("split.count", 2).put<uint16_t>(3));
  EXPECT_EQ(error.message(), "one part of a split GGUF model; nibble reads whole ones");
  EXPECT_EQ(value_of(error, "split.count"), "3");
  EXPECT_EQ(value_of(error, "split.no"), "1");
  EXPECT_THAT(error.what(), HasSubstr("llama-gguf-split --merge"));
  EXPECT_EQ(parse(start(0, 1).key("split.count", 2).put<uint16_t>(1)).metadata.size(), 1u);
}

TEST(Gguf, EveryPrefixOfAFileIsRefused) {
  const std::string whole = read_text(testing::golden_dir() / "checkpoint" / "reference.gguf", 1 << 20);
  for (size_t length = 0; length < 0x260 + 72; ++length)
    EXPECT_THROW(parse(whole.substr(0, length), length), Error) << length;
  EXPECT_EQ(parse(whole.substr(0, 0x260 + 72), 0x260 + 72).tensors.size(), 3u);
  // A head that is shorter than the header, of a file that is not.
  EXPECT_EQ(value_of(thrown_error([&] { parse(whole.substr(0, 100), whole.size()); }), "given_bytes"), "100");
}

// The header is longer than the first piece that is read, so the reader has to read on.
TEST(Gguf, HeadersLargerThanOnePiece) {
  Bytes bytes = start(1, 2).key("long", 8).string(std::string(3'000'000, 'x')).key("after", 4).put<uint32_t>(5);
  bytes.tensor("w", {8}, 0, 0).data(32);
  const testing::TempDir dir;
  write_atomically(dir / "m.gguf", bytes.text);
  const GgufFile file = read_gguf(InputFile::open(dir / "m.gguf"));
  EXPECT_EQ(file.get_string("long")->size(), 3'000'000u);
  EXPECT_EQ(file.get_uint("after"), 5u);
  EXPECT_EQ(file.tensors[0].offset + 32, bytes.text.size());
}

// Facts of the `gguf` package's GGML_QUANT_SIZES for the types that FORMATS.md names and some others.
TEST(GgufTypes, BlockSizes) {
  const std::tuple<uint32_t, const char*, uint32_t, uint32_t> expected[] = {
      {0, "F32", 1, 4},       {1, "F16", 1, 2},       {30, "BF16", 1, 2},     {2, "Q4_0", 32, 18},
      {3, "Q4_1", 32, 20},    {8, "Q8_0", 32, 34},    {12, "Q4_K", 256, 144}, {39, "MXFP4", 32, 17},
      {40, "NVFP4", 64, 36},  {14, "Q6_K", 256, 210}, {19, "IQ1_S", 256, 50}, {23, "IQ4_XS", 256, 136},
      {29, "IQ1_M", 256, 56}, {35, "TQ2_0", 256, 66}, {41, "Q1_0", 128, 18}};
  for (const auto& [id, name, elements, bytes] : expected) {
    const GgufType* type = gguf_type(id);
    ASSERT_NE(type, nullptr) << id;
    EXPECT_STREQ(type->name, name);
    EXPECT_EQ(type->block_elements, elements) << name;
    EXPECT_EQ(type->block_bytes, bytes) << name;
  }
  for (const uint32_t id : {4u, 5u, 31u, 38u, 43u, UINT32_MAX}) EXPECT_EQ(gguf_type(id), nullptr) << id;
  EXPECT_STREQ(removed_gguf_type(4), "Q4_2");
  EXPECT_EQ(removed_gguf_type(2), nullptr);
}

}  // namespace
}  // namespace nibble
