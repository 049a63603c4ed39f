#include "nibble/checkpoint/safetensors.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "nibble/base/syscalls.h"
#include "nibble/testing/golden.h"
#include "nibble/testing/temp_dir.h"
#include "nibble/testing/thrown_error.h"

namespace nibble {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using testing::thrown_error;
using testing::value_of;

SafetensorsHeader parse(const std::string& header, uint64_t buffer_bytes) {
  return parse_safetensors_header(header, buffer_bytes, "m.safetensors");
}

Error refusal(const std::string& header, uint64_t buffer_bytes) {
  return thrown_error([&] { parse(header, buffer_bytes); });
}

std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return fmt::format(R"({{"w":{{"dtype":"{}","shape":{},"data_offsets":{}}}}})", dtype, shape, offsets);
}

std::string file_text(const std::string& header, const std::string& data) {
  const uint64_t length = header.size();
  std::string text(8, '\0');
  std::memcpy(text.data(), &length, 8);
  return text + header + data;
}

TEST(Safetensors, GoldenValidFile) {
  const auto bytes = testing::golden_bytes(testing::golden_micro()["safetensors_valid"]["file_hex"]);
  const testing::TempDir dir;
  write_atomically(dir / "v.safetensors", std::span<const std::byte>(bytes));
  for (const ReadMode mode : {ReadMode::kPread, ReadMode::kMmap}) {
    const SafetensorsHeader header = read_safetensors_header(InputFile::open(dir / "v.safetensors", mode));
    EXPECT_THAT(header.metadata, ElementsAre(Pair("format", "pt")));
    EXPECT_EQ(header.header_bytes, 8u + 0x138);
    EXPECT_EQ(header.trailing_bytes, 0u);
    ASSERT_EQ(header.tensors.size(), 5u);
    const auto& [s, e, p, f, z] =
        std::tie(header.tensors[0], header.tensors[1], header.tensors[2], header.tensors[3], header.tensors[4]);
    EXPECT_EQ(s.name, "s");
    EXPECT_EQ(s.dtype, Dtype::kF32);
    EXPECT_THAT(s.shape, IsEmpty());
    EXPECT_EQ(s.offset, 320u);
    EXPECT_EQ(s.bytes, 4u);
    EXPECT_EQ(e.dtype, Dtype::kF8E8M0);
    EXPECT_EQ(e.offset, 324u);
    EXPECT_EQ(p.name, "p");
    EXPECT_EQ(f.dtype, Dtype::kF4);
    EXPECT_THAT(f.shape, ElementsAre(1u, 4u));
    EXPECT_EQ(f.bytes, 2u);
    EXPECT_EQ(z.offset, 333u);
    EXPECT_EQ(z.bytes, 0u);
    EXPECT_THAT(z.shape, ElementsAre(2u, 0u));
  }
}

TEST(Safetensors, GoldenInvalidHeadersAreRefusedEachForItsReason) {
  const std::map<std::string, std::string> reasons{
      {"overlap", "two tensors overlap in the file"},
      {"hole", "there is a gap between two tensors in the file"},
      {"alias", "two tensors overlap in the file"},
      {"first_not_zero", "the first tensor does not begin at 0"},
      {"trailing", "there are bytes after the last tensor"},
      {"truncated", "the file ends before its last tensor does"},
      {"size_mismatch", "the span in the file is shorter than the shape needs"},
      {"reversed", "`data_offsets` end before they begin"},
      {"odd_f4", "an F4 tensor with an odd last dimension: two elements share a byte"},
      {"overflow", "the shape's product does not fit 64 bits"},
      {"unknown_dtype", "unknown dtype `F12`"},
      {"metadata_not_string", "a value in `__metadata__` is not a string"},
      {"duplicate_key", "a tensor stands twice in one header"},
  };
  size_t tested = 0;
  for (const Json& bad : testing::golden_micro()["safetensors_invalid"]) {
    const Error error = refusal(bad["header"], bad["payload_len"]);
    ASSERT_TRUE(reasons.contains(bad["name"])) << bad["name"];
    EXPECT_EQ(error.message(), reasons.at(bad["name"]));
    EXPECT_EQ(error.file(), "m.safetensors");
    EXPECT_THAT(error.ways_out(), ::testing::Not(IsEmpty())) << bad["name"];
    ++tested;
  }
  EXPECT_EQ(tested, reasons.size());
}

TEST(Safetensors, C111_span_shorter_than_shape) {
  const Error error = refusal(one("F32", "[1000,1000]", "[0,4]"), 4);
  EXPECT_EQ(error.tensor(), "w");
  EXPECT_EQ(value_of(error, "shape_bytes"), "4000000");
  EXPECT_EQ(value_of(error, "span_bytes"), "4");
  EXPECT_THAT(error.what(), HasSubstr("[1000, 1000]"));
}

TEST(Safetensors, C111_span_longer_than_shape) {
  const Error error = refusal(one("F32", "[2]", "[0,12]"), 12);
  EXPECT_EQ(error.message(), "the span in the file is longer than the shape needs");
  EXPECT_EQ(value_of(error, "shape_bytes"), "8");
  EXPECT_EQ(value_of(error, "span_bytes"), "12");
}

TEST(Safetensors, C113_malformed_offsets) {
  const Error missing = refusal(R"({"w":{"dtype":"U8","shape":[4]}})", 4);
  EXPECT_EQ(missing.message(), "a tensor lacks a field");
  EXPECT_EQ(missing.tensor(), "w");
  EXPECT_EQ(value_of(missing, "missing"), "data_offsets");
  for (const auto& [offsets, key, found] : std::vector<std::tuple<const char*, const char*, const char*>>{
           {"[0]", "numbers_found", "1"},
           {"[]", "numbers_found", "0"},
           {"[0,2,4]", "more_numbers_than", "2"},
           {"[4,0]", "data_offsets", "[4, 0]"},
           {"[-1,3]", "found", "-1"},
           {"[0,4.5]", "found", "4.5"},
           {"[0,4.0]", "found", "4.0"},
           {R"(["0","4"])", "data_offsets", "\"0\""},
           {"[0,1e30]", "found", "1e30"},
           {"[0,18446744073709551616]", "found", "18446744073709551616"},
           {"null", "data_offsets", "null"},
           {"{}", "data_offsets", "{}"},
           {"4", "data_offsets", "4"},
           {"[[0,4]]", "data_offsets", "[0,4]"},
           {"[0,null]", "data_offsets", "null"},
           {"[true,4]", "data_offsets", "true"}}) {
    const Error error = refusal(one("U8", "[4]", offsets), 4);
    EXPECT_EQ(error.tensor(), "w") << offsets;
    EXPECT_EQ(value_of(error, key), found) << offsets << ": " << error.what();
  }
}

TEST(Safetensors, C113_malformed_shapes_and_dtypes) {
  for (const char* shape : {"4", "null", "\"4\"", "[-4]", "[4.0]", "[\"4\"]", "[[4]]", "{}", "[1e1]", "[null]"}) {
    const Error error = refusal(one("U8", shape, "[0,4]"), 4);
    EXPECT_EQ(error.tensor(), "w") << shape;
    EXPECT_THAT(error.message(), HasSubstr("`shape` should be")) << shape;
  }
  for (const char* dtype : {"4", "null", "[]", "{\"a\":1}"}) {
    const Error error = refusal(fmt::format(R"({{"w":{{"dtype":{},"shape":[4],"data_offsets":[0,4]}}}})", dtype), 4);
    EXPECT_EQ(error.tensor(), "w");
    EXPECT_EQ(error.message(), "`dtype` should be a string");
  }
  for (const char* tensor : {"4", "null", "[]", "\"x\""}) {
    const Error error = refusal(fmt::format(R"({{"w":{}}})", tensor), 0);
    EXPECT_EQ(error.tensor(), "w");
    EXPECT_EQ(value_of(error, "tensor"), tensor);
  }
}

TEST(Safetensors, C113_broken_json_inside_a_tensor_names_it) {
  const Error error =
      refusal(R"({"v":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"w":{"dtype":"U8","shape":[NaN]}})", 4);
  EXPECT_EQ(error.message(), "not valid JSON");
  EXPECT_EQ(error.tensor(), "w");
}

std::string two(const char* first, const char* second) {
  return fmt::format(
      R"({{"a":{{"dtype":"U8","shape":[4],"data_offsets":{}}},"b":{{"dtype":"U8","shape":[4],"data_offsets":{}}}}})",
      first, second);
}

TEST(Safetensors, C115_overlap_names_both_tensors_and_offsets) {
  const Error error = refusal(two("[0,4]", "[2,6]"), 6);
  EXPECT_EQ(error.tensor(), "b");
  EXPECT_EQ(value_of(error, "data_offsets"), "[2, 6]");
  EXPECT_EQ(value_of(error, "previous_tensor"), "a");
  EXPECT_EQ(value_of(error, "previous_offsets"), "[0, 4]");
}

TEST(Safetensors, C115_gap_names_both_tensors_and_offsets) {
  const Error error = refusal(two("[8,12]", "[0,4]"), 12);
  EXPECT_EQ(error.tensor(), "a");
  EXPECT_EQ(value_of(error, "data_offsets"), "[8, 12]");
  EXPECT_EQ(value_of(error, "previous_tensor"), "b");
  EXPECT_EQ(value_of(error, "previous_offsets"), "[0, 4]");
}

TEST(Safetensors, C115_one_name_twice_in_one_header) {
  const Error error = refusal(
      R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"\u0061":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})",
      8);
  EXPECT_EQ(error.message(), "a tensor stands twice in one header");
  EXPECT_EQ(error.tensor(), "a");
  EXPECT_EQ(value_of(error, "first_offsets"), "[0, 4]");
  EXPECT_EQ(value_of(error, "second_offsets"), "[4, 8]");
}

TEST(Safetensors, FieldsAndMetadataTwice) {
  EXPECT_EQ(refusal(R"({"w":{"dtype":"U8","shape":[4],"shape":[4],"data_offsets":[0,4]}})", 4).message(),
            "a field stands twice in one tensor");
  EXPECT_EQ(refusal(R"({"__metadata__":{"a":"1","a":"2"}})", 0).message(), "a key stands twice in `__metadata__`");
  EXPECT_EQ(refusal(R"({"__metadata__":{},"__metadata__":{}})", 0).message(),
            "`__metadata__` stands twice in the header");
  for (const char* metadata : {"null", "[]", "4", "\"x\""}) {
    EXPECT_EQ(value_of(refusal(fmt::format(R"({{"__metadata__":{}}})", metadata), 0), "__metadata__"), metadata);
  }
}

TEST(Safetensors, C117_header_of_exactly_100000_bytes) {
  std::string header = "{";
  for (int i = 0; i < 852; ++i) {
    header += fmt::format(R"({}"layer.{}":{{"dtype":"U8","shape":[1],"data_offsets":[{},{}]}})", i == 0 ? "" : ",", i,
                          i, i + 1);
  }
  header += '}';
  ASSERT_LT(header.size(), 100'000u);
  header.resize(100'000, ' ');
  const testing::TempDir dir;
  write_atomically(dir / "m.safetensors", file_text(header, std::string(852, 'x')));
  const SafetensorsHeader read = read_safetensors_header(InputFile::open(dir / "m.safetensors"));
  EXPECT_EQ(read.tensors.size(), 852u);
  EXPECT_EQ(read.header_bytes, 100'008u);
  EXPECT_EQ(read.tensors[851].name, "layer.851");
  EXPECT_EQ(read.tensors[851].offset, 100'008u + 851);
}

TEST(Safetensors, C77_four_bit_and_scale_dtypes_load) {
  EXPECT_EQ(parse(one("F4", "[4,64]", "[0,128]"), 128).tensors[0].bytes, 128u);
  EXPECT_EQ(parse(one("F8_E8M0", "[4,2]", "[0,8]"), 8).tensors[0].dtype, Dtype::kF8E8M0);
  EXPECT_EQ(parse(one("I8", "[4,32]", "[0,128]"), 128).tensors[0].dtype, Dtype::kI8);
}

TEST(Safetensors, C77_odd_last_dimension_of_f4) {
  const Error three = refusal(one("F4", "[1,3]", "[0,2]"), 2);
  EXPECT_EQ(three.tensor(), "w");
  EXPECT_EQ(value_of(three, "last_dimension"), "3");
  const Error many = refusal(one("F4", "[4,63]", "[0,126]"), 126);
  EXPECT_EQ(value_of(many, "last_dimension"), "63");
  EXPECT_EQ(value_of(many, "shape"), "[4, 63]");
  EXPECT_EQ(refusal(one("F4", "[]", "[0,1]"), 1).message(), "the elements do not fill whole bytes");
  EXPECT_EQ(value_of(refusal(one("F6_E2M3", "[1,3]", "[0,3]"), 3), "bits"), "18");
  EXPECT_EQ(parse(one("F6_E3M2", "[4]", "[0,3]"), 3).tensors[0].bytes, 3u);
}

TEST(Safetensors, C77_unknown_dtype_is_refused_by_name_and_not_called_corrupt) {
  const Error error = refusal(one("F6_X", "[4]", "[0,3]"), 3);
  EXPECT_EQ(error.message(), "unknown dtype `F6_X`");
  EXPECT_EQ(error.tensor(), "w");
  EXPECT_THAT(error.what(), ::testing::Not(HasSubstr("corrupt")));
  EXPECT_THAT(error.what(), ::testing::Not(HasSubstr("damaged")));
}

TEST(Safetensors, WhiteSpaceAroundTheObject) {
  const std::string header = one("U8", "[1]", "[0,1]");
  EXPECT_EQ(parse(" \t\r\n" + header + " \n\r\t  ", 1).tensors.size(), 1u);
  EXPECT_EQ(value_of(refusal(header + "x", 1), "expected"), "the end of the text");
  EXPECT_EQ(refusal(header + std::string(1, '\0'), 1).message(), "not valid JSON");
  EXPECT_EQ(refusal("[]", 0).message(), "the header is not a JSON object");
  EXPECT_EQ(refusal("", 0).message(), "not valid JSON");
  EXPECT_EQ(parse("{}", 0).tensors.size(), 0u);
}

TEST(Safetensors, HeaderMustBeUtf8AndShallow) {
  EXPECT_EQ(value_of(refusal("{\"\xFF\":1}", 0), "expected"), "UTF-8");
  const std::string deep = std::string(70, '[') + std::string(70, ']');
  EXPECT_EQ(refusal(R"({"w":{"extra":)" + deep + "}}", 0).message(), "JSON is nested too deeply");
}

TEST(Safetensors, UnknownFieldsAreIgnoredButMustBeJson) {
  EXPECT_EQ(parse(R"({"w":{"x":{"y":[1,null,"z"]},"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1).tensors.size(),
            1u);
  EXPECT_EQ(refusal(R"({"w":{"x":[1,],"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1).message(),
            "not valid JSON");
}

TEST(Safetensors, OverflowingShapes) {
  for (const char* shape : {"[4294967296,4294967296]", "[9223372036854775808,2]", "[4194304,4398046511105]",
                            "[0,18446744073709551615,2]"}) {
    const Error error = refusal(one("U8", shape, "[0,0]"), 0);
    // A zero makes a product of 0 only where it comes first, as in the reference reader.
    if (shape[1] == '0') {
      EXPECT_EQ(error.message(), "(nothing was thrown)");
    } else {
      EXPECT_EQ(error.message(), "the shape's product does not fit 64 bits") << shape;
    }
  }
  EXPECT_EQ(refusal(one("F64", "[4611686018427387904]", "[0,0]"), 0).message(),
            "the shape's product does not fit 64 bits");
  // In bits it fits by one: refused for its span instead.
  EXPECT_EQ(value_of(refusal(one("U8", "[2305843009213693951]", "[0,0]"), 0), "shape_bytes"), "2305843009213693951");
  std::string rank = "[1";
  for (int i = 1; i < 64; ++i) rank += ",1";
  EXPECT_EQ(parse(one("U8", rank + "]", "[0,1]"), 1).tensors[0].shape.size(), 64u);
  EXPECT_EQ(value_of(refusal(one("U8", rank + ",1]", "[0,1]"), 1), "more_numbers_than"), "64");
}

TEST(Safetensors, TensorsComeByOffsetEmptyOnesWhereTheyStand) {
  const SafetensorsHeader header = parse(
      R"({"c":{"dtype":"U8","shape":[2],"data_offsets":[1,3]},"z":{"dtype":"U8","shape":[0],"data_offsets":[1,1]},)"
      R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"y":{"dtype":"U8","shape":[0],"data_offsets":[1,1]}})",
      3);
  std::vector<std::string> names;
  names.reserve(header.tensors.size());
  for (const auto& tensor : header.tensors) names.push_back(tensor.name);
  EXPECT_THAT(names, ElementsAre("a", "y", "z", "c"));
}

TEST(Safetensors, TrailingBytesOnlyWhenAllowed) {
  const std::string header = one("U8", "[1]", "[0,1]");
  EXPECT_EQ(value_of(refusal(header, 8), "trailing_bytes"), "7");
  EXPECT_EQ(parse_safetensors_header(header, 8, "m", true).trailing_bytes, 7u);
  EXPECT_EQ(value_of(thrown_error([&] { parse_safetensors_header(header, 0, "m", true); }), "missing_bytes"), "1");
}

TEST(Safetensors, ACutFileNamesTheFirstTensorThatIsNotWhole) {
  const testing::TempDir dir;
  const std::string whole = file_text(two("[0,4]", "[4,8]"), "12345678");
  write_atomically(dir / "m.safetensors", std::string_view(whole).substr(0, whole.size() - 6));
  const InputFile file = InputFile::open(dir / "m.safetensors");
  const Error error = thrown_error([&] { read_safetensors_header(file); });
  EXPECT_EQ(error.tensor(), "a");
  EXPECT_EQ(value_of(error, "missing_bytes"), "6");
  EXPECT_EQ(value_of(error, "needed_bytes"), std::to_string(whole.size()));
  EXPECT_EQ(value_of(error, "file_bytes"), std::to_string(whole.size() - 6));
  const SafetensorsHeader scanned = scan_safetensors_header(file);
  EXPECT_EQ(scanned.missing_bytes, 6u);
  EXPECT_EQ(scanned.tensors.size(), 2u);
}

TEST(Safetensors, LengthsOfTheHeaderItself) {
  const testing::TempDir dir;
  const auto read = [&](const std::string& text) {
    write_atomically(dir / "m.safetensors", text);
    return thrown_error([&] { read_safetensors_header(InputFile::open(dir / "m.safetensors")); });
  };
  EXPECT_EQ(value_of(read(""), "file_bytes"), "0");
  EXPECT_EQ(value_of(read("1234567"), "file_bytes"), "7");
  const Error cut = read(file_text("{}", "").substr(0, 9));
  EXPECT_EQ(cut.message(), "the file ends within its header");
  EXPECT_EQ(value_of(cut, "missing_bytes"), "1");
  EXPECT_EQ(value_of(read(std::string(8, '\xFF')), "header_bytes"), "18446744073709551615");
  std::string over(8, '\0');
  const uint64_t length = kMaxSafetensorsHeader + 1;
  std::memcpy(over.data(), &length, 8);
  EXPECT_EQ(value_of(read(over), "limit"), "100000000");
  const Error pointer = read("version https://git-lfs.github.com/spec/v1\n");
  EXPECT_THAT(pointer.what(), HasSubstr("LFS pointer"));
}

// pread that fails where a test says.
uint64_t failing_offset = 0;
ssize_t pread_with_bad_sector(int fd, void* buffer, size_t count, off_t offset) {
  if (static_cast<uint64_t>(offset) <= failing_offset && failing_offset < static_cast<uint64_t>(offset) + count) {
    errno = EIO;
    return -1;
  }
  return real_syscalls().pread(fd, buffer, count, offset);
}

TEST(Safetensors, C125_device_error_in_the_header) {
  const testing::TempDir dir;
  write_atomically(dir / "m.safetensors", file_text(one("U8", "[1]", "[0,1]"), "x"));
  const InputFile file = InputFile::open(dir / "m.safetensors");
  failing_offset = 20;
  syscalls().pread = pread_with_bad_sector;
  const Error error = thrown_error([&] { read_safetensors_header(file); });
  syscalls() = real_syscalls();
  EXPECT_EQ(error.file(), (dir / "m.safetensors").string());
  EXPECT_EQ(value_of(error, "offset"), "8");
  EXPECT_THAT(error.message(), HasSubstr("Input/output error"));
}

}  // namespace
}  // namespace nibble
