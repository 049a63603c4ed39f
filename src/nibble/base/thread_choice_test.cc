#include "nibble/base/thread_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "nibble/testing/temp_dir.h"

namespace nibble {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

void write(const Path& file, const std::string& text) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file) << text << "\n";
}

// Two nodes of four cores with two hardware threads each: processor i and i + 8 share a core. A third node has memory
// alone.
void two_nodes_with_smt(const Path& root) {
  for (int i = 0; i < 16; ++i) {
    const std::string list = std::to_string(i % 8) + "," + std::to_string(i % 8 + 8);
    write(root / ("sys/devices/system/cpu/cpu" + std::to_string(i)) / "topology/thread_siblings_list", list);
  }
  write(root / "sys/devices/system/node/node0/cpulist", "0-3,8-11");
  write(root / "sys/devices/system/node/node1/cpulist", "4-7,12-15");
  write(root / "sys/devices/system/node/node2/cpulist", "");
}

std::vector<int> numbers(int from, int to, int step = 1) {
  std::vector<int> all;
  for (int i = from; i < to; i += step) all.push_back(i);
  return all;
}

TEST(ThreadChoice, C107_cores_inside_the_mask) {
  const testing::TempDir root;
  two_nodes_with_smt(root.path());
  const ThreadChoice all = choose_threads(numbers(0, 16), root.path());
  EXPECT_EQ(all.threads, 8);
  EXPECT_EQ(all.reason, "8 cores, of 16 processors that this process may use");
  // Odd processors: 1 3 5 7 and their second halves 9 11 13 15.
  EXPECT_EQ(choose_threads(numbers(1, 16, 2), root.path()).threads, 4);
  // A cpuset of one node's first threads: each a core of its own.
  const ThreadChoice one_node = choose_threads(numbers(0, 4), root.path());
  EXPECT_EQ(one_node.threads, 4);
  EXPECT_EQ(one_node.reason, "4 cores");
  EXPECT_EQ(choose_threads(std::vector<int>{3, 11}, root.path()).threads, 1);
}

TEST(ThreadChoice, topology_that_cannot_be_read_counts_processors) {
  const testing::TempDir root;
  EXPECT_EQ(choose_threads(numbers(0, 6), root.path()).threads, 6);
  EXPECT_EQ(choose_threads({}, root.path()).threads, 1);
}

TEST(ThreadChoice, no_more_than_a_control_group_gives_time_for) {
  const testing::TempDir root;
  two_nodes_with_smt(root.path());
  write(root.path() / "proc/self/cgroup", "0::/");
  write(root.path() / "sys/fs/cgroup/cpu.max", "150000 100000");
  const ThreadChoice choice = choose_threads(numbers(0, 16), root.path());
  EXPECT_EQ(choice.threads, 2);
  EXPECT_THAT(choice.reason, HasSubstr("the time of 1.5"));
  write(root.path() / "sys/fs/cgroup/cpu.max", "1600000 100000");
  EXPECT_THAT(choose_threads(numbers(0, 16), root.path()).reason, Not(HasSubstr("time")));
}

TEST(ThreadChoice, this_machine) {
  const std::vector<int> processors = processors_in_mask();
  ASSERT_FALSE(processors.empty());
  const ThreadChoice choice = choose_threads(processors);
  EXPECT_GE(choice.threads, 1);
  EXPECT_LE(choice.threads, static_cast<int>(processors.size()));
}

}  // namespace
}  // namespace nibble
