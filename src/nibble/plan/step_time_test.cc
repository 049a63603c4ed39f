// Steps of a model small enough to be counted by hand.
#include "nibble/plan/step_time.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "nibble/base/json.h"

namespace nibble {
namespace {

// Two layers, H 64, 4 heads of 16, 2 key/value heads; 8 experts of 32, top-2, 16 bits.
Subject tiny() {
  return config_subject(parse_json(R"({"model_type": "qwen3_moe", "hidden_size": 64, "num_hidden_layers": 2,
      "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 128, "num_experts": 8,
      "num_experts_per_tok": 2, "moe_intermediate_size": 32, "intermediate_size": 64, "rms_norm_eps": 1e-6,
      "rope_theta": 10000, "max_position_embeddings": 4096, "tie_word_embeddings": false})",
                                   "tiny"),
                        "tiny");
}

// A gigabyte a second, a tera-operation a second, links a tenth and network cards a hundredth of the memory.
Device plain_device() {
  Device device;
  device.memory_bytes = 1'000'000'000;
  device.memory_bandwidth = 1e9;
  device.bf16_flops = 1e12;
  device.link_bandwidth = 1e8;
  device.link_domain = 4;
  device.link_latency = 1e-6;
  device.nic_bandwidth = 1e7;
  device.nic_latency = 1e-5;
  return device;
}

constexpr double kExpert = 3 * 64 * 32 * 2;  // bytes
// q, k, v, o; norms of queries and keys; router; two norms a layer.
constexpr double kLayerFixed = 2 * (64 * 64 + 32 * 64 + 32 * 64 + 64 * 64 + 2 * 16 + 8 * 64 + 2 * 64);
constexpr double kHeadAndNorm = 2 * (128 * 64 + 64);

class Steps : public ::testing::Test {
 protected:
  StepModel model(const Layout& layout, double flops = 1e12) {
    return {subject_, weights_, layout, device_, 4, flops, 0};
  }
  Subject subject_ = tiny();
  WeightGroups weights_{subject_.spec, weigh_target(subject_, parse_format("bf16"))};
  Device device_ = plain_device();
};

TEST_F(Steps, one_gpu_reads_the_dense_part_once_and_the_touched_experts) {
  for (const uint64_t batch : {1U, 3U}) {
    const StepTime step = model({}).step(batch, 100, 2);
    const double touched = 8 * (1 - std::pow(0.75, batch));
    EXPECT_NEAR(step.distinct_experts, touched, 1e-12);
    const double weights = 2 * kLayerFixed + kHeadAndNorm + 2 * touched * kExpert;
    const double kv = static_cast<double>(batch) * 2 * 100 * 2 * 2 * 16 * 2;
    EXPECT_NEAR(step.weight_bytes, weights, 1e-6);
    EXPECT_NEAR(step.kv_bytes, kv, 1e-6);
    EXPECT_NEAR(step.floor, (weights + kv) / 1e9, 1e-15);
    EXPECT_EQ(step.exchange, 0);
  }
}

TEST_F(Steps, slow_arithmetic_decides) {
  const StepTime step = model({}, 1e6).step(1, 0, 2);
  const double matrices = 2 * (2 * 64 * 64 + 2 * 32 * 64 + 8 * 64) + 128 * 64;
  EXPECT_NEAR(step.compute, 2 * (matrices + 2 * 2 * 3 * 64 * 32) / 1e6, 1e-9);
  EXPECT_EQ(step.floor, step.compute);
}

TEST_F(Steps, tensor_parallelism_halves_and_reduces) {
  const StepTime step = model({2, 1, 1, 1}).step(1, 100, 2);
  // Two reductions a layer of one token's 64 values: ring of two.
  EXPECT_NEAR(step.exchange, 4 * (2e-6 + 2 * 0.5 * 64 * 2 / 1e8), 1e-15);
  EXPECT_NEAR(step.kv_bytes, 2 * 100 * 2 * 1 * 16 * 2, 1e-9);  // one key/value head each
}

TEST_F(Steps, dealt_out_experts_load_the_busiest_rank) {
  const StepTime step = model({1, 2, 1, 2}).step(2, 0, 2);
  const double share = Routing(8, 2).busiest_share(2, 2);
  EXPECT_GT(share, Routing(8, 2).share(2));
  EXPECT_NEAR(step.weight_bytes, 2 * kLayerFixed + kHeadAndNorm + 2 * share * 4 * kExpert, 1e-6);
}

// Without dealing out, every group has its own experts and meets its own tokens alone.
TEST_F(Steps, copies_of_experts_meet_their_groups_tokens) {
  const StepTime one = model({}).step(1, 100, 2);
  const StepTime four = model({1, 1, 1, 4}).step(4, 100, 2);
  EXPECT_EQ(four.weight_bytes, one.weight_bytes);
  EXPECT_NEAR(four.distinct_experts, 2, 1e-12);
  EXPECT_EQ(four.compute, one.compute);
  EXPECT_EQ(four.total(), one.total());
  EXPECT_NEAR(model({1, 1, 1, 4}).tokens_per_second(4, 100, 2), 4 / one.total(), 1e-6);
  // A prompt lies in one group.
  EXPECT_EQ(model({1, 1, 1, 4}, 1e6).prefill(512).total(), model({}, 1e6).prefill(512).total());
  EXPECT_EQ(model({1, 1, 1, 4}).draft_read(4, 100, 2), model({}).draft_read(1, 100, 2));
}

TEST_F(Steps, stages_follow_one_another) {
  const StepTime one = model({}).step(1, 100, 2);
  const StepTime two = model({1, 1, 2, 1}).step(1, 100, 2);
  EXPECT_NEAR(two.read, one.read, 1e-15);
  EXPECT_LT(two.slowest_stage, one.total());
  // 64 values of 16 bits to the second stage, a token's number back; of a prompt that is all there is.
  EXPECT_NEAR(two.exchange, 1e-6 + 64 * 2 / 1e8 + 1e-6 + 4 / 1e8, 1e-15);
  EXPECT_NEAR(model({1, 1, 2, 1}).prefill(10).exchange, 1e-6 + 10 * 64 * 2 / 1e8, 1e-15);
}

// One layer and an MTP layer of latent attention, H 64, 8 experts of 32; its file holds an embedding and a head for the
// MTP layer too.
TEST_F(Steps, drafts_read_the_models_own_head) {
  const Subject subject = config_subject(
      parse_json(R"({"model_type": "deepseek_v3", "hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4,
          "num_key_value_heads": 4, "vocab_size": 128, "n_routed_experts": 8, "num_experts_per_tok": 2,
          "moe_intermediate_size": 32, "n_shared_experts": 1, "first_k_dense_replace": 0, "q_lora_rank": 16,
          "kv_lora_rank": 32, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16, "rms_norm_eps": 1e-6,
          "rope_theta": 10000, "max_position_embeddings": 4096, "num_nextn_predict_layers": 1})",
                 "drafter"),
      "drafter");
  std::vector<WeightItem> items = weigh_target(subject, parse_format("bf16"));
  for (const char* name : {"model.layers.1.embed_tokens.weight", "model.layers.1.shared_head.head.weight"}) {
    WeightItem copy;
    copy.param.name = name;
    copy.param.role = Role::kMtp;
    copy.param.layer = 1;
    copy.param.shape = {128, 64};
    copy.param.counted = false;
    copy.format = parse_format("bf16");
    copy.elements = 128 * 64;
    copy.bytes = 2 * copy.elements;
    items.push_back(copy);
  }
  const WeightGroups weights(subject.spec, items);
  const StepModel model(subject, weights, {}, device_, 4, 1e12, 0);
  // eh_proj; queries through 16, keys and values through 32, output; router with its bias, shared expert; norms of the
  // embedding, the state, the layer (2), the head, and of the bottlenecks.
  const double fixed = 2 * (64 * 128 + (16 * 64 + 4 * 24 * 16) + (40 * 64 + 4 * 32 * 32) + 64 * 64 + 8 * 64 + 8 +
                            3 * 64 * 32 + 5 * 64 + 16 + 32);
  const double head = 2 * 128 * 64;
  const double cache = 100 * (32 + 8) * 2;
  EXPECT_NEAR(model.draft_read(1, 100, 2), (fixed + 2 * kExpert + head + cache) / 1e9, 1e-15);
}

// Two stages, four sequences: while one has two of them, the other has the others.
TEST_F(Steps, stages_work_at_once) {
  const StepModel staged = model({1, 1, 2, 1});
  // The second stage has the head beside its layer, and hands two tokens' numbers back over a link.
  const double touched = 8 * (1 - std::pow(0.75, 2));
  const double read = kLayerFixed + kHeadAndNorm + touched * kExpert + 2.0 * 100 * 2 * 2 * 16 * 2;
  const double slowest = read / 1e9 + 1e-6 + 2 * 4 / 1e8;
  EXPECT_NEAR(staged.tokens_per_second(4, 100, 2), 4 / (2 * slowest), 1e-3);
  EXPECT_GT(staged.tokens_per_second(4, 100, 2), 4 / staged.step(4, 100, 2).total());
  EXPECT_NEAR(staged.tokens_per_second(1, 100, 2), 1 / staged.step(1, 100, 2).total(), 1e-6);
}

}  // namespace
}  // namespace nibble
