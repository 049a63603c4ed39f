// gpt-oss in ModelOpt's layout: fused stacks that lie as the modules compute, with one second-level scale each.
#include <gtest/gtest.h>

#include "nibble/base/error.h"
#include "nibble/base/log.h"
#include "nibble/checkpoint/weight_table.h"
#include "nibble/models/model.h"
#include "nibble/quantize/quantize.h"
#include "nibble/testing/golden.h"
#include "nibble/testing/temp_dir.h"
#include "nibble/testing/thrown_error.h"
#include "nibble/testing/tiny.h"

namespace nibble {
namespace {

using testing::TempDir;
using testing::thrown_error;

class TransposedStack : public ::testing::Test {
 protected:
  void SetUp() override { log::set_level(log::Level::kOff); }

  QuantizeRequest request(const Path& source, const Path& target, const char* layout) const {
    QuantizeRequest request;
    request.source = source;
    request.target = target;
    request.format = parse_writable_format("nvfp4");
    request.rule = default_rule(request.format);
    request.layout = layout;
    request.quiet = true;
    return request;
  }

  // All experts of layer 0, gate and up rows as the source has them.
  static std::vector<float> stack_values(const Path& folder, const std::string& name) {
    const Checkpoint checkpoint = Checkpoint::open(folder);
    Findings findings;
    const Model model = load_model(checkpoint, &findings);
    const int64_t index = model.table.find(name);
    EXPECT_GE(index, 0) << name;
    const Weight& weight = model.table.weights()[static_cast<size_t>(index)];
    std::vector<float> all;
    for (uint64_t slice = 0; slice < weight.slices(); ++slice) {
      const auto values = read_rows_f32(checkpoint, weight, slice, 0, weight.rows());
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

  const std::string gate_up_ = "model.layers.0.mlp.experts.gate_up_proj";
  const std::string down_ = "model.layers.1.mlp.experts.down_proj";
  TempDir dir_;
};

TEST_F(TransposedStack, Mxfp4IsReExpressedExactly) {
  const Path source = testing::golden_dir() / "models" / "gpt_oss_mxfp4";
  quantize(request(source, dir_ / "out", "modelopt"));
  for (const std::string& name : {gate_up_, down_}) {
    const auto values = stack_values(dir_ / "out", name);
    EXPECT_FALSE(values.empty());
    EXPECT_EQ(values, stack_values(source, name)) << name;
  }
  const Checkpoint out = Checkpoint::open(dir_ / "out");
  const StoredTensor& second = out.tensors()[static_cast<size_t>(out.find(gate_up_ + "_weight_scale_2"))];
  EXPECT_TRUE(second.shape.empty());
}

// And back: the bytes of the plain form are those that a direct way gives.
TEST_F(TransposedStack, MovesToOneModuleAnExpert) {
  const Path source = testing::golden_dir() / "models" / "gpt_oss";
  quantize(request(source, dir_ / "stack", "modelopt"));
  auto moved = request(dir_ / "stack", dir_ / "moved", "compressed-tensors");
  const QuantizeResult result = quantize(moved);
  for (const QuantizeRow& row : result.tensors) {
    if (row.role != "routed_expert") continue;
    EXPECT_EQ(row.action, "recast") << row.name;
  }
  const auto stack = stack_values(dir_ / "stack", gate_up_);
  const auto gate = stack_values(dir_ / "moved", "model.layers.0.mlp.experts.0.gate_proj.weight");
  const auto up = stack_values(dir_ / "moved", "model.layers.0.mlp.experts.0.up_proj.weight");
  const size_t cols = 64;
  ASSERT_EQ(gate.size() % cols, 0u);
  for (size_t i = 0; i < gate.size(); ++i) {
    // The second level is stored as a reciprocal there, which may cost the last bit.
    const float expected_gate = stack[i / cols * 2 * cols + i % cols];
    const float expected_up = stack[(i / cols * 2 + 1) * cols + i % cols];
    ASSERT_NEAR(gate[i], expected_gate, 2e-7f * std::abs(expected_gate));
    ASSERT_NEAR(up[i], expected_up, 2e-7f * std::abs(expected_up));
  }
}

TEST_F(TransposedStack, SeveralSecondScalesDoNotGoIntoOne) {
  const Path source = testing::golden_dir() / "models" / "gpt_oss";
  quantize(request(source, dir_ / "experts", "compressed-tensors"));
  auto moved = request(dir_ / "experts", dir_ / "moved", "modelopt");
  const Error error = thrown_error([&] { quantize(moved); });
  EXPECT_NE(error.message().find("one second-level scale"), std::string::npos) << error.what();
  EXPECT_GE(error.ways_out().size(), 2u);
  moved.unify_scales = true;
  EXPECT_NO_THROW(quantize(moved));
}

// Gate and up of one expert under scales of their own: rows of one matrix here. The advice works.
TEST_F(TransposedStack, GateAndUpUnderDifferentScalesAreJoinedInTwoRuns) {
  quantize(request(testing::golden_dir() / "models" / "gpt_oss", dir_ / "made", "compressed-tensors"));
  testing::TinyCheckpoint experts = testing::TinyCheckpoint::load(dir_ / "made");
  const std::string up = "model.layers.0.mlp.experts.1.up_proj.weight_global_scale";
  experts.set_values(up, std::vector<float>{2 * experts.values(up)[0]});
  experts.write(dir_ / "experts");
  auto joined = request(dir_ / "experts", dir_ / "joined", "modelopt");
  for (const bool unify : {false, true}) {
    joined.unify_scales = unify;
    joined.keep = {"name:*down_proj*"};
    const Error error = thrown_error([&] { quantize(joined); });
    EXPECT_NE(error.message().find("different second-level scales"), std::string::npos) << error.what();
    EXPECT_EQ(error.tensor(), "model.layers.0.mlp.experts.1.up_proj.weight") << error.what();
    EXPECT_FALSE(error.ways_out().empty());
  }
  auto unified = request(dir_ / "experts", dir_ / "unified", "compressed-tensors");
  unified.unify_scales = true;
  quantize(unified);
  joined = request(dir_ / "unified", dir_ / "joined", "modelopt");
  joined.unify_scales = true;
  EXPECT_NO_THROW(quantize(joined));
}

TEST_F(TransposedStack, AnyThreadsGiveTheSameBytes) {
  const Path source = testing::golden_dir() / "models" / "gpt_oss";
  auto one = request(source, dir_ / "one", "modelopt");
  one.threads = 1;
  auto four = request(source, dir_ / "four", "modelopt");
  four.threads = 4;
  quantize(one);
  quantize(four);
  const char* file = "model.safetensors";
  EXPECT_EQ(read_text(dir_ / "one" / file, 1 << 24), read_text(dir_ / "four" / file, 1 << 24));
}

}  // namespace
}  // namespace nibble
