#include "nibble/kernels/tuning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "nibble/base/error.h"
#include "nibble/kernels/select.h"
#include "nibble/testing/thrown_error.h"

namespace nibble {
namespace {

using ::testing::HasSubstr;

WeightLayout layout_of(const char* format, uint64_t rows = 64, uint64_t cols = 256) {
  return choose_layout(parse_format(format), rows, cols).layout.value();
}

TEST(Tuning, numbers_of_tokens_share_a_choice_by_powers_of_two) {
  const std::vector<std::pair<uint64_t, uint64_t>> classes = {{0, 0},   {1, 0},   {2, 1},    {3, 1},       {4, 2},
                                                              {7, 2},   {8, 3},   {31, 4},   {32, 5},      {128, 7},
                                                              {511, 8}, {512, 9}, {1023, 9}, {1u << 20, 9}};
  for (const auto& [tokens, index] : classes) EXPECT_EQ(token_class(tokens), index) << tokens;
  for (uint64_t i = 0; i < kTokenClasses; ++i) EXPECT_EQ(token_class(first_of_token_class(i)), i);
}

TEST(Tuning, kinds_of_layouts_know_formats_and_no_sizes) {
  EXPECT_EQ(layout_kind(layout_of("mxfp4")), layout_kind(layout_of("mxfp4", 2880, 2880)));
  std::set<std::string> kinds;
  const auto formats = {"mxfp4", "nvfp4", "int4-g32", "int4-g32-asym", "int4-g128", "int8-g32", "fp8-block", "bf16"};
  for (const char* format : formats) kinds.insert(layout_kind(layout_of(format)));
  EXPECT_EQ(kinds.size(), formats.size());
}

TEST(Tuning, a_table_is_read_as_it_was_written_and_on_its_processor_alone) {
  TuningTable table;
  table.add({"e2m1/e8m0/32", ActivationKind::kInt8, 1, "avx2", 12.25});
  table.add({"e2m1/e8m0/32", ActivationKind::kInt8, 8, "amx", 90});
  table.add({"e2m1/e8m0/32", ActivationKind::kInt8, 8, "avx512-vnni", 80});  // measured again
  const Json written = table.json("A Processor @ 2 GHz");
  const TuningTable read = TuningTable::parse(written, "A Processor @ 2 GHz", "t.json");
  ASSERT_EQ(read.rows().size(), 2u);
  const TuningRow* row = read.find("e2m1/e8m0/32", ActivationKind::kInt8, 15);
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->kernel, "avx512-vnni");
  EXPECT_EQ(row->microseconds, 80);
  EXPECT_EQ(read.find("e2m1/e8m0/32", ActivationKind::kF32, 8), nullptr);
  EXPECT_EQ(read.find("e2m1/e8m0/32", ActivationKind::kInt8, 16), nullptr);
  EXPECT_TRUE(TuningTable::parse(written, "Another", "t.json").rows().empty());
}

TEST(Tuning, what_is_no_table_is_refused_by_name) {
  const auto refusal = [](const char* text) {
    return std::string(
        testing::thrown_error([&] { TuningTable::parse(parse_json(text, "t.json"), "P", "t.json"); }).what());
  };
  EXPECT_THAT(refusal("[]"), HasSubstr("no list `rows`"));
  EXPECT_THAT(refusal(R"({"processor": "P", "rows": 3})"), HasSubstr("t.json"));
  EXPECT_THAT(
      refusal(R"({"processor": "P", "rows": [{"layout": "a", "kernel": "b", "tokens": 3, "activations": "f32"}]})"),
      HasSubstr("a row for 3 tokens"));
  EXPECT_THAT(
      refusal(R"({"processor": "P", "rows": [{"layout": "a", "kernel": "b", "tokens": 1, "activations": "f64"}]})"),
      HasSubstr("f64"));
  EXPECT_THAT(refusal(R"({"processor": "P", "rows": [{"layout": "a", "tokens": 1, "activations": "f32"}]})"),
              HasSubstr("without a layout or a kernel"));
}

TEST(Tuning, C109_the_kernel_for_a_number_of_tokens_is_the_one_measured) {
  const WeightLayout layout = layout_of("mxfp4", 2880, 2880);
  const std::string_view usual = choose_kernel(layout, ActivationKind::kInt8, "", 1, TuningTable()).name;
  TuningTable table;
  for (const uint64_t tokens : {8u, 128u})
    table.add({layout_kind(layout), ActivationKind::kInt8, tokens, "reference", 1});
  table.add({layout_kind(layout), ActivationKind::kInt8, 32, "a-kernel-of-another-release", 1});
  for (const uint64_t tokens : {1u, 8u, 9u, 32u, 128u, 512u}) {
    const bool measured = tokens == 8 || tokens == 9 || tokens == 128;
    const std::string_view wanted = measured ? "reference" : usual;
    EXPECT_EQ(choose_kernel(layout, ActivationKind::kInt8, "", tokens, table).name, wanted) << tokens;
    const KernelChoice& choice = choose_kernels(layout, ActivationKind::kInt8, "", table);
    EXPECT_EQ(choice.kernel(tokens).name, wanted) << tokens;
    EXPECT_EQ(choice.panel(tokens), choice.kernel(tokens).panel(layout)) << tokens;
  }
  EXPECT_EQ(choose_kernel(layout, ActivationKind::kInt8, usual, 8, table).name, usual) << "asked for";
}

TEST(Tuning, C109_choices_are_named_once_and_kept) {
  const WeightLayout layout = layout_of("mxfp4", 2880, 2880);
  const std::string usual(choose_kernel(layout, ActivationKind::kInt8, "", 1, TuningTable()).name);
  TuningTable table;
  table.add({layout_kind(layout), ActivationKind::kInt8, 32, "reference", 1});
  const KernelChoice& plain = choose_kernels(layout, ActivationKind::kInt8, "", TuningTable());
  EXPECT_EQ(plain.name, usual);
  EXPECT_EQ(&plain, &choose_kernels(layout_of("mxfp4"), ActivationKind::kInt8, "", TuningTable()));
  if (usual == "reference") return;  // a processor without any other
  const KernelChoice& tuned = choose_kernels(layout, ActivationKind::kInt8, "", table);
  EXPECT_EQ(tuned.name, usual + ", reference from 32 tokens, " + usual + " from 64 tokens");
}

}  // namespace
}  // namespace nibble
