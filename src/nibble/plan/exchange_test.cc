// What GPUs take to hand each other tokens, by hand; and that machines never beat one, for all devices.
#include "nibble/plan/exchange.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

namespace nibble {
namespace {

// H 64; 8 experts, top-2.
ModelSpec small_spec() {
  ModelSpec spec;
  spec.hidden = 64;
  spec.experts = 8;
  spec.experts_per_token = 2;
  return spec;
}

Device plain_device() {
  Device device;
  device.link_bandwidth = 1e8;
  device.link_domain = 4;
  device.link_latency = 1e-6;
  device.nic_bandwidth = 1e7;
  device.nic_latency = 1e-5;
  return device;
}

constexpr double kToken = 64 * 2;  // bytes

TEST(Exchange, an_all_reduce_inside_a_domain_is_a_ring) {
  const Exchange four(small_spec(), {4, 1, 1, 1}, plain_device(), 8);
  EXPECT_NEAR(four.all_reduce(3), 2e-6 + 2 * 0.75 * 3 * kToken / 1e8, 1e-15);
}

TEST(Exchange, between_machines_every_gpu_has_its_card) {
  const Exchange eight(small_spec(), {8, 1, 1, 1}, plain_device(), 8);
  // Two domains of four: each card carries its quarter there and back, and half of that stays.
  EXPECT_NEAR(eight.all_reduce(3), 2 * 11e-6 + 2 * 0.5 * 3 * kToken / 4 / 1e7, 1e-15);
  // Kimi-K2's 7,168 values of 8,192 tokens over two machines of eight H200s: 15/16 of them twice over 450 GB/s bind,
  // and no single card of 50 GB/s.
  ModelSpec kimi = small_spec();
  kimi.hidden = 7168;
  const Exchange sixteen(kimi, {16, 1, 1, 1}, find_device("h200"), 8);
  EXPECT_NEAR(sixteen.all_reduce(8192), 2.0 * 15 / 16 * 8192 * 7168 * 2 / 450e9 + 14e-6, 1e-9);
}

TEST(Exchange, experts_copies_are_handed_on_inside_their_domain) {
  const Exchange sixteen(small_spec(), {1, 8, 1, 8}, plain_device(), 8);
  // A token's two choices fall on 8 (1 - (7/8)^2) = 1.875 ranks, seven in eight elsewhere; on 1.5 of two domains, half
  // of them its own.
  const double copies = 1.875 * 7 / 8;
  EXPECT_NEAR(sixteen.experts(1, 8, 1), 2 * (copies * kToken / 1e8 + 1e-6), 1e-15);
  EXPECT_NEAR(sixteen.experts(1, 8, 2), 2 * (0.75 * kToken / 1e7 + 11e-6), 1e-15);
  Device quick = plain_device();
  quick.nic_bandwidth = 1e9;
  const Exchange handed_on(small_spec(), {1, 8, 1, 8}, quick, 8);
  EXPECT_NEAR(handed_on.experts(1, 8, 2), 2 * (copies * kToken / 1e8 + 11e-6), 1e-15);
}

// What a token's state is sent to, by walking through every GPU that it may lie on and all ranks that two choices fall
// on: GPUs that hold a part of one of its experts, and other domains with such a GPU.
struct Sent {
  double copies = 0, domains = 0;
};

Sent walk(uint64_t gpus, uint64_t ranks, uint64_t domain) {
  Sent sent;
  for (uint64_t home = 0; home < gpus; ++home) {
    for (uint64_t choices = 0; choices < ranks * ranks; ++choices) {
      std::set<uint64_t> domains;
      for (uint64_t gpu = 0; gpu < gpus; ++gpu) {
        const uint64_t rank = gpu / (gpus / ranks);
        if (gpu == home || (rank != choices % ranks && rank != choices / ranks)) continue;
        sent.copies += 1;
        if (gpu / domain != home / domain) domains.insert(gpu / domain);
      }
      sent.domains += static_cast<double>(domains.size());
    }
  }
  const double cases = static_cast<double>(gpus * ranks * ranks);
  return {sent.copies / cases, sent.domains / cases};
}

// Of 16 GPUs in domains of 4 or 2, from whole experts to such that several domains cut.
TEST(Exchange, all_gpus_that_cut_an_expert_get_its_tokens) {
  for (const uint64_t ranks : {2U, 4U, 8U, 16U}) {
    for (const uint64_t tp : {1U, 4U, 16U}) {
      SCOPED_TRACE(std::to_string(ranks) + " ranks, TP " + std::to_string(tp));
      const Layout layout{tp, ranks, 1, 16 / tp};
      Device device = plain_device();
      const double group = static_cast<double>(tp);
      const double copies = walk(16, ranks, 16).copies;
      const Exchange one(small_spec(), layout, device, 4);
      EXPECT_NEAR(one.experts(group, 16, 1), 2 * (copies * kToken / 1e8 + 1e-6), 1e-15);
      device.link_bandwidth = 1e12;  // the cards decide
      for (const uint64_t domain : {4U, 2U}) {
        device.link_domain = domain;
        const Exchange several(small_spec(), layout, device, 4);
        ASSERT_EQ(several.domains(), 16 / domain);
        const double across = walk(16, ranks, domain).domains;
        EXPECT_NEAR(several.experts(group, 16), 2 * (across * kToken / 1e7 + 11e-6), 1e-15) << domain;
      }
    }
  }
}

TEST(Exchange, the_fullest_sender_or_the_busiest_receiver_decides) {
  const Layout layout{1, 4, 1, 4};
  const double copies = 1.75 * 3 / 4;
  const Exchange even(small_spec(), layout, plain_device(), 4);
  EXPECT_NEAR(even.experts(1, 1), 2 * (copies * kToken / 1e8 + 1e-6), 1e-15);  // one token lies on one GPU
  const Exchange skewed(small_spec(), layout, plain_device(), 4, 1.5);
  EXPECT_NEAR(skewed.experts(2, 8), 2 * (1.5 * 2 * copies * kToken / 1e8 + 1e-6), 1e-15);
  // A rank that gets every token gets no more than that: 4 / 1.75 of the average.
  const Exchange one_rank(small_spec(), layout, plain_device(), 4, 4);
  EXPECT_NEAR(one_rank.experts(2, 8), 2 * (4 / 1.75 * 2 * copies * kToken / 1e8 + 1e-6), 1e-15);
}

TEST(Exchange, domains_end_with_the_machine_unless_they_span_several) {
  const auto domains = [](const char* gpu, uint64_t gpus, uint64_t per_machine) {
    return Exchange(small_spec(), {gpus, 1, 1, 1}, find_device(gpu), per_machine).domains();
  };
  EXPECT_EQ(domains("h200", 8, 8), 1U);
  EXPECT_EQ(domains("h200", 8, 1), 8U);
  EXPECT_EQ(domains("h200", 16, 16), 2U);  // two boards of eight in one machine
  EXPECT_EQ(domains("gb200", 72, 4), 1U);
  EXPECT_EQ(domains("gb200", 144, 144), 2U);
  EXPECT_EQ(domains("l40s", 8, 8), 1U);  // over the machine's bus
  EXPECT_EQ(domains("l40s", 16, 8), 2U);
}

void expect_not_quicker_over_several(const ModelSpec& spec, const Layout& layout, const Device& device) {
  const Exchange one(spec, layout, device, layout.gpus());
  for (const double tokens : {1.0, 64.0, 8192.0}) {
    const double group = std::ceil(tokens / static_cast<double>(layout.dp));
    for (const uint64_t machine : {1U, 2U, 4U, 8U}) {
      SCOPED_TRACE(device.name + " " + layout.name() + " in machines of " + std::to_string(machine));
      const Exchange several(spec, layout, device, machine);
      EXPECT_GE(several.domains(), one.domains());
      EXPECT_GE(several.all_reduce(group), one.all_reduce(group));
      EXPECT_GE(several.experts(group, tokens), one.experts(group, tokens));
      EXPECT_GE(several.stages(group), one.stages(group));
    }
  }
}

TEST(Exchange, several_machines_are_never_quicker_than_one) {
  for (const Device& device : devices()) {
    if (!device.has_wires()) continue;
    for (const auto& [experts, chosen] : {std::pair{128U, 8U}, std::pair{384U, 8U}, std::pair{16U, 1U}}) {
      ModelSpec spec = small_spec();
      spec.hidden = 2048;
      spec.experts = experts;
      spec.experts_per_token = chosen;
      for (const Layout& layout : {Layout{16, 1, 1, 1}, Layout{4, 16, 1, 4}, Layout{1, 16, 1, 16}, Layout{8, 4, 2, 2}})
        expect_not_quicker_over_several(spec, layout, device);
    }
  }
}

}  // namespace
}  // namespace nibble
