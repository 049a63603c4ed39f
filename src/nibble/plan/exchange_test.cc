// What GPUs take to hand each other tokens, by hand; and that machines never beat one, for all devices.
#include "nibble/plan/exchange.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

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

// Four stages of 2 GPUs in domains of 4: the second of three hand-overs leaves its domain, and so does the way back.
TEST(Exchange, stages_hand_over_once_fewer_than_they_are) {
  const Exchange four(small_spec(), {2, 1, 4, 1}, plain_device(), 8);
  const double by_link = 1e-6 + 3 * kToken / 2 / 1e8, by_card = 1e-5 + 3 * kToken / 2 / 1e7;
  EXPECT_NEAR(four.hand_over(3, 0), by_link, 1e-15);
  EXPECT_NEAR(four.hand_over(3, 1), by_card, 1e-15);
  EXPECT_NEAR(four.hand_over(3, 2), by_link, 1e-15);
  EXPECT_EQ(four.hand_over(3, 3), 0);
  EXPECT_NEAR(four.hand_back(3), 1e-5 + 3 * 4 / 1e7, 1e-15);
  const Exchange one(small_spec(), {8, 1, 1, 1}, plain_device(), 8);
  EXPECT_EQ(one.hand_over(3, 0) + one.hand_back(3), 0);
}

// Can so many groups of `size` GPUs be laid into domains, each into `most` of them at most? By trying.
class Layer {
 public:
  Layer(uint64_t size, uint64_t most) : size_(size), most_(most) {}

  // What is free in each domain.
  bool lay(uint64_t groups, std::vector<uint64_t> free) const {
    if (groups == 0) return true;
    std::sort(free.begin(), free.end());
    return lay_one(groups, free, 0, size_, most_);
  }

 private:
  bool lay_one(uint64_t groups, const std::vector<uint64_t>& free, size_t domain, uint64_t left, uint64_t parts) const {
    if (left == 0) return lay(groups - 1, free);
    if (domain == free.size() || parts == 0) return false;
    for (uint64_t here = std::min(left, free[domain]); here > 0; --here) {
      std::vector<uint64_t> rest = free;
      rest[domain] -= here;
      if (lay_one(groups, rest, domain + 1, left - here, parts - 1)) return true;
    }
    // Nothing here: nor in others of which as much is free.
    size_t next = domain + 1;
    while (next < free.size() && free[next] == free[domain]) ++next;
    return lay_one(groups, free, next, left, parts);
  }

  uint64_t size_, most_;
};

TEST(Exchange, groups_are_torn_apart_only_where_they_must_be) {
  for (const uint64_t domain : {2U, 3U, 4U, 5U}) {
    Device device = plain_device();
    device.link_domain = domain;
    for (uint64_t size = 2; size <= 7; ++size) {
      for (uint64_t groups = 1; groups * size <= 5 * domain; ++groups) {
        const uint64_t domains = (groups * size + domain - 1) / domain;
        uint64_t most = 1;
        while (!Layer(size, most).lay(groups, std::vector<uint64_t>(domains, domain))) ++most;
        SCOPED_TRACE(std::to_string(groups) + " groups of " + std::to_string(size) + " in " + std::to_string(domain));
        EXPECT_EQ(Exchange(small_spec(), {size, 1, groups, 1}, device, domain).domains(), most);
        // The all-reduce of a group that lies in so many: their cards share what goes across.
        const double p = static_cast<double>(size), m = static_cast<double>(most);
        const double inside = 2 * (p - 1) / p * kToken / 1e8;
        const double across = most == 1 ? 0 : 2 * (m - 1) / m * kToken / (p / m) / 1e7;
        const double latency = 2 * (1e-6 + (most == 1 ? 0 : 1e-5));
        EXPECT_NEAR(Exchange(small_spec(), {size, 1, 1, groups}, device, domain).all_reduce(1),
                    std::max(inside, across) + latency, 1e-15);
      }
    }
  }
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
      for (uint64_t stage = 0; stage < layout.pp; ++stage)
        EXPECT_GE(several.hand_over(group, stage), one.hand_over(group, stage));
      EXPECT_GE(several.hand_back(group), one.hand_back(group));
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
