#include "nibble/checkpoint/name_index.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace nibble {
namespace {

TEST(NameIndex, EmptyFindsNothing) {
  const NameIndex names;
  EXPECT_EQ(names.find(""), -1);
  EXPECT_EQ(names.find("a"), -1);
}

TEST(NameIndex, FindsEachOfManyWithAndWithoutReserve) {
  std::vector<std::string> all;
  all.reserve(5003);
  for (int i = 0; i < 5000; ++i) all.push_back("model.layers." + std::to_string(i) + ".weight");
  all.emplace_back("");
  all.emplace_back("a");
  all.emplace_back("a\0", 2);  // the same eight bytes as "a" once padded
  for (const bool reserved : {false, true}) {
    NameIndex names;
    if (reserved) names.reserve(all.size());
    for (const auto& name : all) EXPECT_EQ(names.insert(name), -1) << name;
    for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(names.find(all[i]), static_cast<int64_t>(i));
    EXPECT_EQ(names.find("model.layers.5000.weight"), -1);
    EXPECT_EQ(names.find("b"), -1);
  }
}

TEST(NameIndex, ASecondOfAnEqualNameIsReportedAndTheFirstFound) {
  NameIndex names;
  EXPECT_EQ(names.insert("x"), -1);
  EXPECT_EQ(names.insert("y"), -1);
  EXPECT_EQ(names.insert("x"), 0);
  EXPECT_EQ(names.insert("z"), -1);
  EXPECT_EQ(names.insert("y"), 1);
  EXPECT_EQ(names.size(), 5u);
  EXPECT_EQ(names.find("x"), 0);
  EXPECT_EQ(names.find("z"), 3);
  names.reserve(1000);  // rebuilding keeps the first ones
  EXPECT_EQ(names.find("x"), 0);
  EXPECT_EQ(names.find("y"), 1);
  EXPECT_EQ(names.find("z"), 3);
}

}  // namespace
}  // namespace nibble
