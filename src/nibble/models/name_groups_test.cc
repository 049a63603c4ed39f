#include "nibble/models/name_groups.h"

#include <gtest/gtest.h>

namespace nibble {
namespace {

TEST(NameGroups, whole_components_of_digits_fold) {
  EXPECT_EQ(name_pattern("model.layers.12.mlp.experts.3.w1.weight"), "model.layers.#.mlp.experts.#.w1.weight");
  EXPECT_EQ(name_pattern("7"), "#");
  EXPECT_EQ(name_pattern("a..1x.1"), "a..1x.#");
  EXPECT_EQ(name_pattern(""), "");
}

TEST(NameGroups, counts_by_kind_in_order) {
  NameGroups groups;
  EXPECT_TRUE(groups.add("l.0.b", 10));
  EXPECT_TRUE(groups.add("l.0.a", 11));
  EXPECT_FALSE(groups.add("l.7.b", 12));
  ASSERT_EQ(groups.groups().size(), 2U);
  EXPECT_EQ(groups.groups()[0].first, "l.0.b");
  EXPECT_EQ(groups.groups()[0].count, 2U);
  EXPECT_EQ(groups.groups()[0].tag, 10U);
  EXPECT_EQ(groups.total(), 3U);
}

TEST(NameGroups, memory_is_bounded_for_names_that_are_all_different) {
  NameGroups groups;
  for (size_t i = 0; i < NameGroups::kMaxGroups + 5; ++i) groups.add("x" + std::to_string(i));
  EXPECT_EQ(groups.groups().size(), NameGroups::kMaxGroups);
  EXPECT_EQ(groups.ungrouped(), 5U);
  EXPECT_EQ(groups.total(), NameGroups::kMaxGroups + 5);
}

TEST(NameGroups, nearest_takes_over_the_numbers) {
  NameGroups candidates;
  candidates.add("model.layers.0.mlp.experts.0.gate_proj.weight");
  candidates.add("model.layers.0.mlp.gate.weight");
  const NameGroup switched{name_pattern("model.layers.5.mlp.switch_mlp.9.gate_proj.weight"),
                           "model.layers.5.mlp.switch_mlp.9.gate_proj.weight", 1, 0};
  EXPECT_EQ(nearest_parameter(switched, candidates.groups()), "model.layers.5.mlp.experts.9.gate_proj.weight");
  const NameGroup stacked{name_pattern("model.layers.5.mlp.experts.gate_proj.weight"),
                          "model.layers.5.mlp.experts.gate_proj.weight", 1, 0};
  EXPECT_EQ(nearest_parameter(stacked, candidates.groups()), "model.layers.0.mlp.experts.0.gate_proj.weight");
  EXPECT_EQ(nearest_parameter(stacked, {}), "");
}

}  // namespace
}  // namespace nibble
