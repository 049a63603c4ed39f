#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "nibble/checkpoint/safetensors.h"
#include "nibble/testing/temp_dir.h"
#include "nibble/testing/thrown_error.h"

namespace nibble {
namespace {

using ::testing::ElementsAre;
using testing::thrown_error;
using testing::value_of;

std::vector<std::string> names_of(const std::vector<TensorDecl>& tensors) {
  std::vector<std::string> names;
  names.reserve(tensors.size());
  for (const auto& tensor : tensors) names.push_back(tensor.name);
  return names;
}

TEST(PlanSafetensors, DescendingRankThenNamePaddedToEight) {
  const SafetensorsLayout layout = plan_safetensors({{"b", Dtype::kU8, {3}},
                                                     {"a", Dtype::kU8, {1}},
                                                     {"w", Dtype::kBF16, {2, 2}},
                                                     {"s", Dtype::kF8E8M0, {2}},
                                                     {"n", Dtype::kI64, {2}},
                                                     {"f", Dtype::kF4, {2, 2}}},
                                                    {{"format", "pt"}});
  EXPECT_THAT(names_of(layout.tensors), ElementsAre("n", "w", "s", "a", "b", "f"));
  EXPECT_EQ(layout.header.size() % 8, 0u);
  const uint64_t base = layout.header.size();
  EXPECT_THAT(layout.offsets, ElementsAre(base, base + 16, base + 24, base + 26, base + 27, base + 30));
  EXPECT_EQ(layout.file_bytes, base + 32);
  uint64_t length = 0;
  std::memcpy(&length, layout.header.data(), 8);
  EXPECT_EQ(length, base - 8);
  EXPECT_EQ(layout.header.substr(8, 90),
            R"({"__metadata__":{"format":"pt"},"n":{"dtype":"I64","shape":[2],"data_offsets":[0,16]},"w":)");
}

// Nothing but what is no multiple of 8 bytes moves, and every tensor lies on a multiple of its element.
TEST(PlanSafetensors, AsGivenButForWhatWouldBreakAlignment) {
  const SafetensorsLayout layout = plan_safetensors({{"0.codes", Dtype::kU8, {3, 8}},
                                                     {"0.odd", Dtype::kU8, {3}},
                                                     {"0.scale", Dtype::kBF16, {2, 2}},
                                                     {"0.global", Dtype::kF32, {1}},
                                                     {"0.shape", Dtype::kI64, {2}},
                                                     {"1.codes", Dtype::kU8, {8}},
                                                     {"1.bias", Dtype::kBF16, {3}}},
                                                    {}, TensorOrder::kAsGiven);
  EXPECT_THAT(names_of(layout.tensors),
              ElementsAre("0.codes", "0.scale", "0.shape", "1.codes", "0.global", "1.bias", "0.odd"));
  const uint64_t base = layout.header.size();
  EXPECT_THAT(layout.offsets, ElementsAre(base, base + 24, base + 32, base + 48, base + 56, base + 60, base + 66));
  EXPECT_EQ(layout.file_bytes, base + 69);
}

// tests/golden/checkpoint/make_containers.py wrote the file with safetensors 0.8.0.
TEST(PlanSafetensors, SameBytesAsTheReferenceWriter) {
  const Path golden = testing::golden_dir() / "checkpoint" / "reference.safetensors";
  const InputFile file = InputFile::open(golden);
  const SafetensorsHeader read = read_safetensors_header(file);
  ASSERT_EQ(read.tensors.size(), 12u);
  std::vector<TensorDecl> decls;
  std::vector<std::vector<std::byte>> data;
  for (size_t i = read.tensors.size(); i-- > 0;) {  // backwards, so that the order is ours
    const StoredTensor& tensor = read.tensors[i];
    decls.push_back({tensor.name, tensor.dtype, tensor.shape});
    data.emplace_back(tensor.bytes);
    file.read_at(tensor.offset, data.back());
  }
  const testing::TempDir dir;
  write_safetensors(dir / "ours.safetensors", decls, data, read.metadata);
  EXPECT_EQ(read_text(dir / "ours.safetensors", 1 << 20), read_text(golden, 1 << 20));
}

TEST(PlanSafetensors, WhatIsWrittenIsReadBack) {
  const testing::TempDir dir;
  const std::string odd_name = "quote \" backslash \\ newline \n control \x01 \xC3\xBC";
  const std::map<std::string, std::string> metadata{{"k\"", "v\n"}, {"", ""}};
  write_safetensors(dir / "m.safetensors",
                    {{odd_name, Dtype::kU8, {2}}, {"z", Dtype::kF32, {0, 5}}, {"", Dtype::kI8, {}}},
                    {{std::byte{1}, std::byte{2}}, {}, {std::byte{3}}}, metadata);
  const InputFile file = InputFile::open(dir / "m.safetensors");
  const SafetensorsHeader read = read_safetensors_header(file);
  EXPECT_EQ(read.metadata, metadata);
  ASSERT_EQ(read.tensors.size(), 3u);
  EXPECT_EQ(read.tensors[0].name, "z");
  EXPECT_THAT(read.tensors[0].shape, ElementsAre(0u, 5u));
  EXPECT_EQ(read.tensors[1].name, "");
  EXPECT_EQ(read.tensors[2].name, odd_name);
  std::vector<std::byte> bytes(2);
  file.read_at(read.tensors[2].offset, bytes);
  EXPECT_THAT(bytes, ElementsAre(std::byte{1}, std::byte{2}));
}

TEST(PlanSafetensors, NoTensorsAndNoMetadata) {
  const SafetensorsLayout layout = plan_safetensors({}, {});
  EXPECT_EQ(layout.header.substr(8), "{}      ");
  EXPECT_EQ(layout.file_bytes, 16u);
}

TEST(PlanSafetensors, RefusesWhatNoReaderCouldTake) {
  const auto refusal = [](std::vector<TensorDecl> tensors) {
    return thrown_error([&] { plan_safetensors(std::move(tensors), {}); });
  };
  const Error twice = refusal({{"a", Dtype::kU8, {1}}, {"b", Dtype::kU8, {1}}, {"a", Dtype::kF32, {1}}});
  EXPECT_EQ(twice.message(), "two tensors to be written have one name");
  EXPECT_EQ(twice.tensor(), "a");
  EXPECT_EQ(refusal({{"\xFF", Dtype::kU8, {1}}}).message(), "a safetensors file cannot hold a tensor of this name");
  EXPECT_EQ(refusal({{"__metadata__", Dtype::kU8, {1}}}).message(),
            "a safetensors file cannot hold a tensor of this name");
  EXPECT_EQ(value_of(refusal({{"f", Dtype::kF4, {4, 63}}}), "last_dimension"), "63");
  EXPECT_EQ(value_of(refusal({{"r", Dtype::kU8, std::vector<uint64_t>(65, 1)}}), "dimensions"), "65");
  const uint64_t huge = UINT64_MAX / 8;
  EXPECT_EQ(refusal({{"a", Dtype::kU8, {huge}}, {"b", Dtype::kU8, {huge}}}).message(), "(nothing was thrown)");
  std::vector<TensorDecl> many;
  many.reserve(9);
  for (int i = 0; i < 9; ++i) many.push_back({std::to_string(i), Dtype::kU8, {huge}});
  EXPECT_EQ(refusal(many).tensor(), "8");
}

TEST(TensorDecl, BytesOfAShape) {
  EXPECT_EQ((TensorDecl{"a", Dtype::kF4, {4, 64}}.bytes()), 128u);
  EXPECT_EQ((TensorDecl{"a", Dtype::kBF16, {3, 5}}.bytes()), 30u);
  EXPECT_EQ((TensorDecl{"a", Dtype::kF64, {}}.bytes()), 8u);
  EXPECT_EQ((TensorDecl{"a", Dtype::kF64, {0}}.bytes()), 0u);
}

}  // namespace
}  // namespace nibble
