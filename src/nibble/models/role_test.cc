#include "nibble/models/role.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace nibble {
namespace {

TEST(Role, names_are_those_of_the_command_line) {
  std::vector<std::string> names;
  for (const Role role : all_roles()) names.emplace_back(role_name(role));
  EXPECT_THAT(names, ::testing::ElementsAre("routed_expert", "shared_expert", "dense_mlp", "attention", "latent",
                                            "router", "norm", "embedding", "head", "mtp", "bias", "unknown"));
}

TEST(Role, names_parse_back) {
  for (const Role role : all_roles()) EXPECT_EQ(parse_role(role_name(role)), role);
  EXPECT_EQ(parse_role("routed_experts"), std::nullopt);
  EXPECT_EQ(parse_role(""), std::nullopt);
}

}  // namespace
}  // namespace nibble
