// What stages hold, summed over the weights and layers that lie there.
#include "nibble/plan/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "nibble/base/json.h"

namespace nibble {
namespace {

// Four layers: two dense ones with full attention, whose cache grows, before two with experts and a fixed state.
Subject cache_before_experts() {
  return config_subject(parse_json(R"({"model_type": "qwen3_next", "hidden_size": 256, "num_hidden_layers": 4,
      "num_attention_heads": 8, "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 512, "num_experts": 64,
      "num_experts_per_tok": 2, "moe_intermediate_size": 128, "shared_expert_intermediate_size": 128,
      "intermediate_size": 512, "mlp_only_layers": [0, 1], "decoder_sparse_step": 1, "rms_norm_eps": 1e-6,
      "rope_theta": 10000, "max_position_embeddings": 65536, "tie_word_embeddings": false,
      "layer_types": ["full_attention", "full_attention", "linear_attention", "linear_attention"],
      "linear_num_value_heads": 4, "linear_num_key_heads": 4, "linear_key_head_dim": 32,
      "linear_value_head_dim": 32, "linear_conv_kernel_dim": 4})",
                                   "staged"),
                        "staged");
}

Subject tied(Subject subject) {
  subject.spec.tied_embeddings = true;
  std::erase_if(subject.params, [](const ParamSpec& param) { return param.role == Role::kHead; });
  return subject;
}

// Two dense layers before two with experts, and an MTP layer.
Subject drafter() {
  return config_subject(parse_json(R"({"model_type": "deepseek_v3", "hidden_size": 256, "num_hidden_layers": 4,
      "num_attention_heads": 8, "num_key_value_heads": 8, "vocab_size": 512, "n_routed_experts": 64,
      "num_experts_per_tok": 2, "moe_intermediate_size": 128, "n_shared_experts": 1, "intermediate_size": 512,
      "first_k_dense_replace": 2, "q_lora_rank": 64, "kv_lora_rank": 64, "qk_nope_head_dim": 32,
      "qk_rope_head_dim": 16, "v_head_dim": 32, "rms_norm_eps": 1e-6, "rope_theta": 10000,
      "max_position_embeddings": 65536, "tie_word_embeddings": false, "num_nextn_predict_layers": 1})",
                                   "drafter"),
                        "drafter");
}

Device plain_device() {
  Device device;
  device.memory_bytes = 100'000'000'000;
  device.memory_bandwidth = 1e12;
  device.link_bandwidth = 1e11;
  device.link_domain = 8;
  return device;
}

struct Held {
  uint64_t weights = 0, kv = 0;
  uint64_t sum() const { return weights + kv; }
};

class Memory : public ::testing::Test {
 protected:
  explicit Memory(Subject subject)
      : subject_(std::move(subject)),
        items_(weigh_target(subject_, parse_format("bf16"))),
        weights_(subject_.spec, items_) {}
  Memory() : Memory(cache_before_experts()) {}

  MemoryPlan plan(uint64_t pp, const PlanRequest& request) {
    return plan_memory(subject_, weights_, {1, 1, pp, 1}, device_, request);
  }

  // Of layers [first, last), one after the other.
  Held held(size_t first, size_t last, const PlanRequest& request) const {
    Held held;
    for (const WeightItem& item : items_) {
      const bool front = item.param.role == Role::kEmbedding;
      const auto layer = static_cast<size_t>(item.param.layer);
      const bool here = item.param.layer >= 0 ? layer >= first && layer < last
                                              : (front ? first == 0 : last == subject_.spec.layers.size());
      if (here) held.weights += item.bytes;
    }
    for (size_t i = first; i < last; ++i)
      held.kv += request.concurrency * subject_.cache.layers()[i].bytes(request.context, request.kv_element_bytes);
    return held;
  }

  Subject subject_;
  std::vector<WeightItem> items_;
  WeightGroups weights_;
  Device device_ = plain_device();
};

TEST_F(Memory, the_largest_weights_and_the_largest_cache_lie_on_different_stages) {
  PlanRequest request;
  request.context = 1024;
  request.reserve = 0;
  for (const uint64_t concurrency : {1U, 64U}) {
    request.concurrency = concurrency;
    const Held dense = held(0, 2, request);
    const Held experts = held(2, 4, request);
    ASSERT_GT(experts.weights, dense.weights);
    ASSERT_GT(dense.kv, experts.kv);
    const Held& fullest = concurrency == 1 ? experts : dense;
    ASSERT_EQ(fullest.sum(), std::max(dense.sum(), experts.sum()));
    const MemoryPlan memory = plan(2, request);
    EXPECT_EQ(memory.weights, fullest.weights);
    EXPECT_EQ(memory.kv, fullest.kv);
    const MemoryPlan one = plan(1, request);
    EXPECT_EQ(one.weights, dense.weights + experts.weights);
    EXPECT_EQ(one.kv, dense.kv + experts.kv);
  }
}

// Of 8,192 tokens, in 16 bits: four streams of 256 and the widest intermediate (of a dense MLP three times 512, of
// linear attention four times 128); in layers with experts two inputs with three intermediates of 128 each. Logits of
// 1,024 tokens are the last stage's.
TEST_F(Memory, activations_are_those_of_the_stage) {
  PlanRequest request;
  request.context = 1024;
  request.reserve = 0;
  request.concurrency = 64;
  constexpr uint64_t kDense = 8192 * (4 * 256 + 3 * 512) * 2;
  constexpr uint64_t kExperts = 8192 * (4 * 256 + 4 * 128 + 2 * (256 + 3 * 128)) * 2 + 1024 * 512 * 4;
  EXPECT_EQ(plan(2, request).activations, kDense);
  request.concurrency = 1;
  EXPECT_EQ(plan(2, request).activations, kExperts);
}

constexpr uint64_t kEmbedding = 512 * 256 * 2;

class TiedMemory : public Memory {
 protected:
  TiedMemory() : Memory(tied(cache_before_experts())) {}
};

TEST_F(TiedMemory, the_last_stage_has_the_embedding_as_its_head) {
  PlanRequest request;
  request.concurrency = 1;
  request.context = 1024;
  const Held experts = held(2, 4, request);
  const MemoryPlan memory = plan(2, request);
  EXPECT_EQ(memory.weights, experts.weights + kEmbedding);
  EXPECT_EQ(memory.by_role[static_cast<size_t>(Role::kEmbedding)], kEmbedding);
  // On one GPU it is there already.
  EXPECT_EQ(plan(1, request).weights, held(0, 4, request).weights);
}

class DraftingMemory : public Memory {
 protected:
  DraftingMemory() : Memory(drafter()) {}
};

TEST_F(DraftingMemory, what_drafts_on_the_last_stage_embeds_there) {
  PlanRequest request;
  request.concurrency = 1;
  request.context = 1024;
  uint64_t mtp = 0;
  for (const WeightItem& item : items_) mtp += item.param.role == Role::kMtp ? item.bytes : 0;
  ASSERT_GT(mtp, 0U);
  const uint64_t experts = held(2, 4, request).weights;
  EXPECT_EQ(plan(2, request).weights, experts);
  request.draft = 1;
  EXPECT_EQ(plan(2, request).weights, experts + mtp + kEmbedding);
  EXPECT_EQ(plan(1, request).weights, held(0, 4, request).weights + mtp);
}

}  // namespace
}  // namespace nibble
