// Casts that lose nothing, end to end: what comes out decodes to the same numbers, is said to be exact, and what cannot
// be exact is refused with a way out.
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "nibble/base/error.h"
#include "nibble/base/log.h"
#include "nibble/models/model.h"
#include "nibble/quantize/quantize.h"
#include "nibble/quantize/unit_encoder.h"
#include "nibble/testing/faulty_syscalls.h"
#include "nibble/testing/golden.h"
#include "nibble/testing/temp_dir.h"
#include "nibble/testing/thrown_error.h"
#include "nibble/testing/tiny.h"

namespace nibble {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): helpers of tests, no header

class ExactRecastRun : public ::testing::Test {
 protected:
  void SetUp() override { log::set_level(log::Level::kOff); }

  static QuantizeRequest request(const Path& source, const Path& target, const char* format, const char* layout = "") {
    QuantizeRequest request;
    request.source = source;
    request.target = target;
    request.format = parse_writable_format(format);
    request.rule = default_rule(request.format);
    request.layout = layout;
    request.quiet = true;
    return request;
  }

  // Bits of every expert's values. Stacks are taken apart, so that both forms have the same names.
  static std::map<std::string, std::vector<float>> expert_values(const Path& folder) {
    const Checkpoint checkpoint = Checkpoint::open(folder);
    Findings findings;
    const Model model = load_model(checkpoint, &findings);
    std::map<std::string, std::vector<float>> values;
    for (size_t w = 0; w < model.table.weights().size(); ++w) {
      const Weight& weight = model.table.weights()[w];
      if (model.params[w].role != Role::kRoutedExpert || weight.shape.size() < 2) continue;
      std::vector<float>& all = values[weight.name];
      for (uint64_t slice = 0; slice < weight.slices(); ++slice) {
        const auto rows = read_rows_f32(checkpoint, weight, slice, 0, weight.rows());
        all.insert(all.end(), rows.begin(), rows.end());
      }
    }
    EXPECT_FALSE(values.empty());
    return values;
  }

  static bool same_bits(const std::map<std::string, std::vector<float>>& a,
                        const std::map<std::string, std::vector<float>>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
      return x.first == y.first && x.second.size() == y.second.size() &&
             std::memcmp(x.second.data(), y.second.data(), x.second.size() * sizeof(float)) == 0;
    });
  }

  static void expect_exact(const QuantizeResult& result) {
    uint64_t experts = 0;
    for (const QuantizeRow& row : result.tensors) {
      if (row.role != "routed_expert") continue;
      ++experts;
      EXPECT_EQ(row.action, "recast") << row.name;
      EXPECT_EQ(row.note, "exact") << row.name;
      EXPECT_NE(row.reason.find("re-expressed exactly"), std::string::npos) << row.reason;
      EXPECT_LT(row.rel_rmse, 0) << row.name;
    }
    EXPECT_GT(experts, 0u);
  }

  // A checkpoint in MXFP4, and from it one in NVFP4.
  Path through_nvfp4(const char* layout) {
    TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
    tiny.quantize("compressed-tensors", "mxfp4");
    tiny.write(dir_ / "mxfp4");
    expect_exact(quantize(request(dir_ / "mxfp4", dir_ / "nvfp4", "nvfp4", layout)));
    return dir_ / "nvfp4";
  }

  // As a library writes it: block scales of any mantissa.
  Path plain_nvfp4() {
    TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
    tiny.quantize("compressed-tensors", "nvfp4");
    tiny.write(dir_ / "plain");
    return dir_ / "plain";
  }

  TempDir dir_;
};

TEST_F(ExactRecastRun, Mxfp4ThroughNvfp4ToEightBitsKeepsEveryBit) {
  for (const char* layout : {"compressed-tensors", "modelopt"}) {
    const Path source = through_nvfp4(layout);
    const auto before = expert_values(dir_ / "mxfp4");
    EXPECT_TRUE(same_bits(before, expert_values(source)));
    for (const char* format : {"fp8-tensor", "fp8-channel", "fp8-block", "mxfp8"}) {
      SCOPED_TRACE(std::string(layout) + " to " + format);
      QuantizeRequest again = request(source, dir_ / "target", format, "compressed-tensors");
      again.dry_run = true;
      const QuantizeResult planned = quantize(again);
      ASSERT_EQ(planned.notes.size(), 1u);
      EXPECT_NE(planned.notes[0].find("24 weights in nvfp4 can be re-expressed exactly if"), std::string::npos);
      EXPECT_NE(planned.notes[0].find("rounded by " + again.rule.name()), std::string::npos) << planned.notes[0];
      for (const QuantizeRow& row : planned.tensors) {
        if (row.role != "routed_expert") continue;
        EXPECT_EQ(row.action, "recast");
        EXPECT_EQ(row.reason.substr(row.reason.find(';')),
                  "; nvfp4 is re-expressed exactly where its block scales allow it");
      }
      again.dry_run = false;
      expect_exact(quantize(again));
      EXPECT_TRUE(same_bits(before, expert_values(dir_ / "target")));
      std::filesystem::remove_all(dir_ / "target");
    }
    std::filesystem::remove_all(source);
  }
}

// The second level of a stack of ModelOpt's, and scales in E8M0.
TEST_F(ExactRecastRun, StacksAndPowersOfTwo) {
  quantize(request(golden_dir() / "models" / "gpt_oss_mxfp4", dir_ / "stack", "nvfp4", "modelopt"));
  expect_exact(quantize(request(dir_ / "stack", dir_ / "split", "fp8-channel", "compressed-tensors")));
  expect_exact(quantize(
      request(golden_dir() / "models" / "gpt_oss_mxfp4", dir_ / "direct", "fp8-channel", "compressed-tensors")));
  EXPECT_TRUE(same_bits(expert_values(dir_ / "split"), expert_values(dir_ / "direct")));
}

// The same bytes as with the rule given, and every weight says why.
TEST_F(ExactRecastRun, WhatCannotBeExactIsRoundedAndSaysSo) {
  const Path source = plain_nvfp4();
  for (const char* format : {"fp8-tensor", "fp8-channel", "fp8-block", "mxfp8"}) {
    SCOPED_TRACE(format);
    QuantizeRequest again = request(source, dir_ / "target", format);
    const QuantizeResult result = quantize(again);
    uint64_t rounded = 0;
    for (const QuantizeRow& row : result.tensors) {
      if (row.role != "routed_expert") continue;
      ++rounded;
      EXPECT_EQ(row.action, "quantized");
      EXPECT_GT(row.rel_rmse, 0);
      EXPECT_EQ(row.note.find("rounded, since a cast cannot be exact: "), 0u) << row.note;
      EXPECT_NE(row.note.find("slice 0, row "), std::string::npos) << row.note;
    }
    EXPECT_EQ(rounded, 24u);
    EXPECT_NE(result.notes.back().find("24 weights could not be cast exactly"), std::string::npos)
        << result.notes.back();
    again.target = dir_ / "by_rule";
    again.rule_given = true;
    quantize(again);
    EXPECT_TRUE(same_bits(expert_values(dir_ / "target"), expert_values(dir_ / "by_rule")));
    std::filesystem::remove_all(dir_ / "target");
    std::filesystem::remove_all(dir_ / "by_rule");
  }
}

// Exponents 20 apart in two rows: no scale for the matrix, one for each row.
TEST_F(ExactRecastRun, RowsAndTilesAreJudgedOneByOne) {
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
  tiny.quantize("compressed-tensors", "mxfp4");
  TinyTensor& scales = tiny.at("model.layers.0.mlp.experts.1.up_proj.weight_scale");
  ASSERT_EQ(scales.shape[1], 2u);
  for (const size_t at : {6u, 7u}) scales.data[at] = static_cast<std::byte>(static_cast<int>(scales.data[at]) - 20);
  tiny.write(dir_ / "source");
  expect_exact(quantize(request(dir_ / "source", dir_ / "rows", "fp8-channel")));
  EXPECT_TRUE(same_bits(expert_values(dir_ / "source"), expert_values(dir_ / "rows")));
  for (const QuantizeRow& row : quantize(request(dir_ / "source", dir_ / "whole", "fp8-tensor")).tensors) {
    const bool spread = row.name == "model.layers.0.mlp.experts.1.up_proj.weight";
    if (row.role != "routed_expert") continue;
    EXPECT_EQ(row.action, spread ? "quantized" : "recast") << row.name;
  }
}

// Reads of a run over one unit after another, when this much may be kept.
uint64_t reads_keeping(const Path& source, uint64_t keep_bytes) {
  const Checkpoint checkpoint = Checkpoint::open(source);
  Findings findings;
  const Model model = load_model(checkpoint, &findings);
  QuantizeRequest request;
  request.format = parse_writable_format("nvfp4");
  request.rule = default_rule(request.format);
  request.layout = "compressed-tensors";
  const OutputPlan plan = plan_output(checkpoint, model, request);
  const EncodeContext context{&checkpoint, &model, &request, &plan, keep_bytes, kChunkBytes, {}};
  const FaultySyscalls counted(UINT64_MAX, 0, false, Calls::kPread);
  for (const OutShard& shard : plan.shards) {
    for (const Unit& unit : shard.units)
      encode_unit(context, unit, [](uint32_t, uint32_t, uint64_t, std::span<const std::byte>) {});
  }
  return counted.calls();
}

// A step of the exact cast to NVFP4 looks at its matrices twice, and reads them once if there is room for this step's.
TEST_F(ExactRecastRun, AMatrixIsReadOnceIfItsStepCanBeKept) {
  const Path source = golden_dir() / "models" / "gpt_oss_mxfp4";
  const Checkpoint checkpoint = Checkpoint::open(source);
  Findings findings;
  const Model model = load_model(checkpoint, &findings);
  uint64_t step = 0;  // the largest matrix: gate and up lie in one
  for (const Weight& weight : model.table.weights()) {
    if (weight.format.name != "mxfp4") continue;
    step = std::max(step, EncodedMatrix::make(weight.format, weight.rows(), weight.cols()).bytes());
  }
  ASSERT_GT(step, 0u);
  const uint64_t once = reads_keeping(source, uint64_t{1} << 30);
  EXPECT_EQ(reads_keeping(source, step), once);
}

}  // namespace
}  // namespace nibble
