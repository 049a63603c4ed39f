// Shapes too small to say anything of speed: that rows hold what they should, whatever the kind of layer.
#include "nibble/engine/bench/layer_bench.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nibble/base/error.h"
#include "nibble/ledger/kv_cache.h"

namespace nibble {
namespace {

using ::testing::HasSubstr;

// Grouped-query attention, four experts of which two are chosen.
ModelSpec small_model() {
  ModelSpec spec;
  spec.hidden = 64;
  spec.heads = 4;
  spec.kv_heads = 2;
  spec.head_dim = 32;
  spec.experts = 4;
  spec.experts_per_token = 2;
  spec.expert_intermediate = 96;
  spec.layers.resize(1);
  spec.layers[0].mlp = MlpKind::kMoe;
  return spec;
}

LayerBenchRequest request_of(const ModelSpec& model) {
  LayerBenchRequest request;
  request.model = model;
  request.format = "mxfp4";
  request.arithmetic.integer_activations = ActivationKind::kInt8;
  request.seconds = 0;
  request.memory = 1;
  return request;
}

void expect_a_good_bench(const ModelSpec& model) {
  ThreadPool pool(2);
  LayerBench bench(request_of(model), &pool);
  EXPECT_EQ(bench.check(), 0);
  EXPECT_FALSE(bench.kernels().empty());
  for (const uint64_t tokens : {uint64_t{1}, uint64_t{70}}) {
    const PassRow row = bench.measure(tokens, tokens == 1 ? 100 : 0);
    EXPECT_EQ(row.op, tokens == 1 ? "decode" : "prefill");
    EXPECT_EQ(row.tokens, tokens);
    EXPECT_GE(row.runs, 3U);
    EXPECT_GT(row.seconds, 0);
    EXPECT_GT(sum_of(row.steps).f32_flops, 0);
    EXPECT_GT(sum_of(row.steps).bytes, 0);
  }
}

// Two of four experts in MXFP4, attention in INT8 (both with INT8 activations), router in 16 bits, keys and values of
// 101 tokens: every byte and operation of one token.
TEST(LayerBench, counts_what_one_token_reads_and_multiplies) {
  const ModelSpec model = small_model();
  ThreadPool pool(1);
  LayerBench bench(request_of(model), &pool);
  const PassRow row = bench.measure(1, 100);
  ASSERT_EQ(row.steps.size(), 1U);
  const OpWork work = row.steps[0];
  const double attention = 64 * (4 * 32 + 2 * 2 * 32) + 64 * 4 * 32, experts = 2 * 3 * 64 * 96;
  EXPECT_EQ(work.int8_flops, 2 * (attention + experts));
  const double heads = 2 * 4 * (32 + 32) * 100;
  EXPECT_EQ(work.f32_flops, 2 * 4 * 64 + heads);
  // A router of four rows is a row group of 16 in memory.
  const double weights = attention * 34 / 32 + experts * 17 / 32 + 16 * 64 * 2;
  EXPECT_EQ(work.bytes, weights + static_cast<double>(KvCache(model).read_bytes(101, 2)));
}

TEST(LayerBench, experts_with_and_without_biases_and_sinks) {
  expect_a_good_bench(small_model());
  ModelSpec model = small_model();
  model.attention_bias = model.sinks = model.expert_naming.biases = true;
  model.qk_norm = QkNorm::kPerHead;
  model.router = RouterKind::kTopKSoftmax;
  expect_a_good_bench(model);
}

TEST(LayerBench, latent_attention_and_a_shared_expert) {
  ModelSpec model = small_model();
  model.layers[0].attention = AttentionKind::kMla;
  model.q_lora_rank = 32;
  model.kv_lora_rank = 32;
  model.qk_nope_head_dim = 32;
  model.qk_rope_head_dim = 16;
  model.v_head_dim = 32;
  model.shared_experts = 1;
  model.shared_intermediate = 96;
  model.router = RouterKind::kSigmoidBias;
  expect_a_good_bench(model);
}

TEST(LayerBench, a_dense_layer_has_the_format_throughout) {
  ModelSpec model = small_model();
  model.experts = 0;
  model.layers[0].mlp = MlpKind::kDense;
  model.dense_intermediate = 128;
  expect_a_good_bench(model);
}

// Copies beyond the memory that is asked for, and refusal beyond the memory that is there.
TEST(LayerBench, copies_follow_the_memory) {
  const ModelSpec model = small_model();
  ThreadPool pool(1);
  RandomLayersRequest request;
  request.spec = &model;
  request.layer = model.layers[0];
  request.experts = parse_format("mxfp4");
  request.others = parse_format("int8-g32");
  request.memory = 100'000;
  RandomLayers layers(request, &pool);
  const double own = static_cast<double>(layers.layers()[0].bytes());  // experts are kept apart
  EXPECT_GE(own * static_cast<double>(layers.layers().size()), 100'000);
  EXPECT_LT(own * static_cast<double>(layers.layers().size() - 1), 100'000);
  EXPECT_EQ(layers.spec().layers.size(), layers.layers().size());
  EXPECT_NE(layers.layers()[0].moe.experts[0].gate.matrix.data, layers.layers()[1].moe.experts[0].gate.matrix.data);
  request.available = 100'000;
  EXPECT_THROW(RandomLayers(request, &pool), Error);
}

std::string refusal(const std::string& name) {
  try {
    bundled_shape(name);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(LayerBench, shapes_are_bundled_models_that_run) {
  EXPECT_EQ(bundled_shape("gpt-oss-20b").experts, 32U);
  EXPECT_THAT(refusal("gpt-oss-20"), HasSubstr("gpt-oss-20b"));
  EXPECT_THAT(refusal("deepseek-v3.2"), HasSubstr("does not run"));
  ThreadPool pool(1);
  LayerBenchRequest request = request_of(small_model());
  request.format = "q6_k";
  EXPECT_THROW(LayerBench(request, &pool), Error);
}

}  // namespace
}  // namespace nibble
