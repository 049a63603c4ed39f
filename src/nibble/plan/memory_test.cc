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

}  // namespace
}  // namespace nibble
