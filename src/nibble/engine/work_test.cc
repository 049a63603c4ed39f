// That passes count what their matrices are: the numbers that floors are divided by.
#include "nibble/engine/work.h"

#include <gtest/gtest.h>

#include <set>

#include "nibble/engine/engine.h"
#include "nibble/engine/open_model.h"
#include "nibble/kernels/weight_layout.h"

namespace nibble {
namespace {

TEST(Work, of_a_product_is_two_operations_a_weight_and_token) {
  const WeightLayout layout = choose_layout(parse_format("int8-g32"), 48, 64).layout.value();
  const OpWork int8 = product_work(layout, ActivationKind::kInt8, 3);
  EXPECT_EQ(int8.int8_flops, 2 * 48 * 64 * 3);
  EXPECT_EQ(int8.f32_flops, 0);
  EXPECT_EQ(int8.bytes, 48 * (64 + 2 * 2));  // codes, and two 16-bit scales a row
  EXPECT_EQ(product_work(layout, ActivationKind::kF32, 3).f32_flops, int8.int8_flops);
  EXPECT_EQ(sum_of(std::vector<OpWork>{int8, int8}).flops(), 2 * int8.flops());
}

struct Opened {
  OpenedModel opened;
  ThreadPool pool{2};
  Engine engine;

  Opened(const std::string& name, const EngineOptions& options)
      : opened(open_model((Path(NIBBLE_SOURCE_DIR) / "tests/golden/models" / name).string(), 1)),
        engine(opened.checkpoint, opened.model, options, &pool) {}

  std::vector<float> run(const std::vector<TokenId>& tokens, bool all_logits = false) {
    CachedSequence sequence = engine.make_sequence();
    const EngineInput input{&sequence, tokens, all_logits};
    const std::span<const float> logits = engine.run(std::span(&input, 1));
    return {logits.begin(), logits.end()};
  }
};

EngineOptions with_int8() {
  EngineOptions options;
  options.arithmetic.integer_activations = ActivationKind::kInt8;
  return options;
}

// Every matrix of a dense model once a pass; every token in all of them, the head for the last alone.
TEST(Work, of_a_dense_pass_is_all_matrices) {
  Opened model("llama", {});
  double weights = 0, bytes = 0, head = 0;
  model.engine.visit_matrices([&](const Linear& matrix) {
    head = static_cast<double>(matrix.rows() * matrix.cols());  // it comes last
    weights += head;
    bytes += static_cast<double>(matrix.matrix.layout.bytes());
  });
  for (const uint64_t tokens : {uint64_t{1}, uint64_t{5}}) {
    model.run(std::vector<TokenId>(tokens, 7));
    const OpWork work = sum_of(model.engine.work());
    EXPECT_EQ(work.f32_flops, 2 * ((weights - head) * static_cast<double>(tokens) + head));
    EXPECT_EQ(work.int8_flops, 0);
    EXPECT_EQ(work.bytes, bytes);
    EXPECT_EQ(static_cast<double>(model.engine.bytes_read()), bytes);
  }
}

// One token reads two of four experts, two that differ five times as much or less; flops follow tokens, not experts.
TEST(Work, of_a_pass_with_experts_is_those_that_were_chosen) {
  Opened model("qwen3_moe_int4", with_int8());
  model.run({7});
  const OpWork one = sum_of(model.engine.work());
  model.run({7, 8, 9, 10, 11});
  const OpWork five = sum_of(model.engine.work());
  EXPECT_GT(one.int8_flops, 0);
  EXPECT_EQ(five.int8_flops, 5 * one.int8_flops);
  EXPECT_GE(five.bytes, one.bytes);
  double all = 0, experts = 0;
  model.engine.visit_matrices([&](const Linear& matrix) {
    all += static_cast<double>(matrix.matrix.layout.bytes());
    const bool integer = matrix.activations == ActivationKind::kInt8;
    if (integer) experts += static_cast<double>(matrix.matrix.layout.bytes());
  });
  EXPECT_EQ(all - one.bytes, experts / 2);
  EXPECT_LE(five.bytes, all);
}

TEST(Engine, other_kernels_give_the_same_bits) {
  Opened model("gpt_oss_mxfp4", with_int8());
  const std::vector<TokenId> tokens = {1, 2, 3, 4, 5, 6, 7};
  const auto kernels = [&] {
    std::set<std::string_view> names;
    model.engine.visit_matrices([&](const Linear& matrix) { names.insert(matrix.kernel_name()); });
    return names;
  };
  const std::set<std::string_view> chosen = kernels();
  const std::vector<float> quick = model.run(tokens, true);
  model.engine.set_kernel("reference");
  EXPECT_EQ(kernels(), std::set<std::string_view>{"reference"});
  EXPECT_EQ(model.run(tokens, true), quick);
  model.engine.set_kernel("");
  EXPECT_EQ(kernels(), chosen);
}

}  // namespace
}  // namespace nibble
