#include "nibble/checkpoint/shard_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nibble/testing/thrown_error.h"

namespace nibble {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using testing::thrown_error;
using testing::value_of;

ShardIndex parse(const std::string& text) { return parse_shard_index(text, "i.json"); }
Error refusal(const std::string& text) {
  return thrown_error([&] { parse(text); });
}

TEST(ShardIndex, FilesInOrderOfFirstMention) {
  const ShardIndex index = parse(
      R"({"metadata":{"total_size":12,"x":[1]},"weight_map":{"b":"2.safetensors","a":"1.safetensors","c":"2.safetensors"},"y":1})");
  EXPECT_THAT(index.files, ElementsAre("2.safetensors", "1.safetensors"));
  EXPECT_THAT(index.weights, ElementsAre(Pair("b", 0u), Pair("a", 1u), Pair("c", 0u)));
  EXPECT_EQ(index.total_size, 12u);
}

TEST(ShardIndex, TotalSizeIsAdvisory) {
  for (const char* metadata :
       {"{}", "null", "[]", R"({"total_size":"12"})", R"({"total_size":1.5})", R"({"total_size":-1})", "3",
        R"({"total_size":NaN})", R"({"total_size":-Infinity,"x":[Infinity]})"}) {
    const ShardIndex index = parse(std::string(R"({"metadata":)") + metadata + R"(,"weight_map":{"a":"f"}})");
    EXPECT_FALSE(index.total_size) << metadata;
  }
  EXPECT_FALSE(parse(R"({"weight_map":{"a":"f"}})").total_size);
}

TEST(ShardIndex, FileNamesMustBeBare) {
  for (const char* file : {"../x", "a/b", "/etc/passwd", "a\\\\b", "..", ".", "", "a\\u0000b", "x/", "C:\\\\x"}) {
    const Error error = refusal(std::string(R"({"weight_map":{"w":")") + file + "\"}}");
    EXPECT_EQ(error.message(), "the index names a file outside the folder: shards are bare file names") << file;
    EXPECT_EQ(error.tensor(), "w");
    EXPECT_EQ(error.file(), "i.json");
  }
  EXPECT_THAT(parse(R"({"weight_map":{"w":"..x..safetensors"}})").files, ElementsAre("..x..safetensors"));
}

TEST(ShardIndex, C115_one_name_in_two_shards) {
  const Error error = refusal(R"({"weight_map":{"w":"1.safetensors","v":"1.safetensors","w":"2.safetensors"}})");
  EXPECT_EQ(error.message(), "the index names a tensor twice");
  EXPECT_EQ(error.tensor(), "w");
  EXPECT_EQ(value_of(error, "first_shard"), "1.safetensors");
  EXPECT_EQ(value_of(error, "second_shard"), "2.safetensors");
}

TEST(ShardIndex, MalformedIndexes) {
  EXPECT_EQ(refusal("[]").message(), "the index is not a JSON object");
  EXPECT_EQ(refusal("{}").message(), "the index has no `weight_map`");
  EXPECT_EQ(refusal(R"({"weight_map":{}})").message(), "the index names no tensor");
  EXPECT_EQ(refusal(R"({"weight_map":[]})").message(), "`weight_map` is not an object");
  EXPECT_EQ(refusal(R"({"weight_map":{"a":"f"},"weight_map":{"b":"f"}})").message(),
            "`weight_map` stands twice in the index");
  EXPECT_EQ(refusal(R"({"metadata":{},"metadata":{}})").message(), "`metadata` stands twice in the index");
  const Error number = refusal(R"({"weight_map":{"a":3}})");
  EXPECT_EQ(number.tensor(), "a");
  EXPECT_EQ(value_of(number, "found"), "3");
  const Error cut = refusal(R"({"weight_map":{"a":"f")");
  EXPECT_EQ(cut.message(), "not valid JSON");
  EXPECT_EQ(value_of(cut, "byte"), "22");
}

TEST(ShardIndex, TextIsSortedAndReadsBack) {
  ShardIndex index;
  index.files = {"2.safetensors", "1.safetensors"};
  index.weights = {{"b", 0}, {"a\"", 1}, {"c", 0}};
  index.total_size = 7;
  const std::string text = shard_index_text(index);
  EXPECT_EQ(text, R"({
  "metadata": {
    "total_size": 7
  },
  "weight_map": {
    "a\"": "1.safetensors",
    "b": "2.safetensors",
    "c": "2.safetensors"
  }
}
)");
  const ShardIndex read = parse(text);
  EXPECT_THAT(read.weights, ElementsAre(Pair("a\"", 0u), Pair("b", 1u), Pair("c", 1u)));
  EXPECT_EQ(read.total_size, 7u);
}

}  // namespace
}  // namespace nibble
