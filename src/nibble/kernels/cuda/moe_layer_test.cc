#include "nibble/kernels/cuda/moe_layer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "nibble/base/error.h"
#include "nibble/kernels/cuda/moe_reference.h"

namespace nibble {
namespace {

FragmentLayout layout_of(uint64_t n, uint64_t k) {
  return choose_fragment_layout(parse_format("mxfp4"), n, k).layout.value();
}

struct Checked {
  alignas(16) std::byte bytes[16] = {};
  float numbers[2] = {};
  uint16_t halves[2] = {};
  MoeLayer layer;
  MoeCall call;

  Checked() {
    layer.shape = {.experts = 8, .routed_experts = 32, .first_expert = 16, .topk = 4, .hidden = 64, .intermediate = 96};
    layer.gate_up = {layout_of(192, 64), bytes, numbers, nullptr};
    layer.down = {layout_of(64, 96), bytes, numbers, nullptr};
    call.tokens = 3;
    call.x = halves;
    call.logits = numbers;
    call.out = halves;
    call.workspace = bytes;
  }
  std::string wrong() const { return check_moe_layer(layer, call); }
};

TEST(MoeLayer, what_a_launch_would_refuse_is_named) {
  EXPECT_EQ(Checked().wrong(), "");
  Checked tokens;
  tokens.call.tokens = 17;
  EXPECT_EQ(tokens.wrong(), "17 tokens: 1 to 16 are taken");
  Checked rank;
  rank.layer.shape.first_expert = 25;
  EXPECT_EQ(rank.wrong(), "experts 25 to 32 are beyond the router's 32");
  Checked shape;
  shape.layer.down.layout = layout_of(64, 64);
  EXPECT_EQ(shape.wrong(), "down is (64, 64), the shape says (64, 96)");
  Checked aligned;
  aligned.layer.gate_up.data = aligned.bytes + 4;
  EXPECT_EQ(aligned.wrong(), "gate_up is not aligned to 16 bytes");
  Checked router;
  router.layer.shape.router = MoeRouterKind::kSigmoidBias;
  EXPECT_EQ(router.wrong(), "the router's correction is null");
  Checked mixed;
  mixed.layer.down.layout.group = 16;
  mixed.layer.down.layout.scale = ScaleType::kE4M3;
  EXPECT_EQ(mixed.wrong(), "gate_up and down have different formats");
}

TEST(MoeReference, softmax_is_over_the_chosen_and_ties_go_to_the_lower_id) {
  const MoeShape shape{.experts = 4, .routed_experts = 4, .topk = 2};
  const auto log3 = static_cast<float>(std::log(3.0));
  const MoeRouting routing = route_reference(shape, std::vector<float>{0, log3, -1, 0}, {});
  EXPECT_EQ(routing.ids, (std::vector<int32_t>{1, 0}));
  EXPECT_NEAR(routing.weights[0], 0.75, 1e-7);
  EXPECT_NEAR(routing.weights[1], 0.25, 1e-7);
}

// The correction decides who is chosen and is no part of the weight; experts of other ranks are -1.
TEST(MoeReference, sigmoid_router_of_a_rank) {
  const MoeShape shape{.experts = 2,
                       .routed_experts = 4,
                       .first_expert = 2,
                       .topk = 2,
                       .router = MoeRouterKind::kSigmoidBias,
                       .scaling = 2};
  const std::vector<float> logits = {0, 5, 0, 5}, correction = {1, 0, 1, -1};
  const MoeRouting routing = route_reference(shape, logits, correction);
  EXPECT_EQ(routing.ids, (std::vector<int32_t>{-1, 0}));
  EXPECT_NEAR(routing.weights[0], 1, 1e-12);
  EXPECT_NEAR(routing.weights[1], 1, 1e-12);
}

TEST(MoeReference, both_activations_by_hand) {
  MoeShape shape{.experts = 1, .topk = 2, .hidden = 1, .intermediate = 8};
  DecodedExpert expert;
  expert.gate_up.assign(16, 1);
  for (uint64_t row = 8; row < 16; ++row) expert.gate_up[row] = 2;  // up
  expert.down.assign(8, 0.5F);
  expert.down_bias = {1};
  const MoeRouting routing{{0, -1}, {0.25, 0.75}};
  const auto ask = [&](int32_t) -> const DecodedExpert& { return expert; };
  // silu(1) = 0.7310585786300049; 8 products of 0.5 * 2 silu(1), plus 1, by a quarter.
  EXPECT_NEAR(moe_reference(shape, routing, std::vector<float>{1}, ask)[0], 0.25 * (8 * 0.7310585786300049 + 1), 1e-12);
  // Gate 10 is limited to 7, up 20 to 7: 7 sigmoid(1.702 * 7) * 8.
  shape.gate = GateKind::kClampedSwiglu;
  const double h = 7 / (1 + std::exp(-1.702 * 7)) * 8;
  EXPECT_NEAR(moe_reference(shape, routing, std::vector<float>{10}, ask)[0], 0.25 * (8 * 0.5 * h + 1), 1e-12);
}

}  // namespace
}  // namespace nibble
