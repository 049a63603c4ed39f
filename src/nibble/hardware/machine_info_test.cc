#include "nibble/hardware/machine_info.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string_view>

#include "nibble/testing/temp_dir.h"

namespace nibble {
namespace {

using testing::TempDir;

TEST(MachineInfo, ReadsWhatTheSystemSays) {
  const TempDir root;
  std::filesystem::create_directories(root.path() / "proc/self");
  std::filesystem::create_directories(root.path() / "sys/fs/cgroup/a/b");
  const auto write = [&](const char* file, const char* text) {
    write_atomically(root.path() / file, std::string_view(text));
  };
  EXPECT_EQ(machine_info(root.path()).processor, "unknown processor");
  EXPECT_EQ(machine_info(root.path()).memory_bytes, 0u);
  write("proc/cpuinfo", "processor\t: 0\nmodel\t\t: 17\nmodel name\t: AMD EPYC 9654 96-Core Processor\n");
  write("proc/meminfo", "MemTotal:       1000 kB\nMemFree: 10 kB\nMemAvailable:   800 kB\n");
  EXPECT_EQ(machine_info(root.path()).processor, "AMD EPYC 9654 96-Core Processor");
  EXPECT_EQ(machine_info(root.path()).memory_bytes, 1024000u);
  EXPECT_EQ(machine_info(root.path()).available_bytes, 819200u);
  // A group of 500,000 bytes, 300,000 of them used, 100,000 of these for files.
  write("proc/self/cgroup", "0::/a/b\n");
  write("sys/fs/cgroup/a/memory.max", "500000\n");
  write("sys/fs/cgroup/a/memory.current", "300000\n");
  write("sys/fs/cgroup/a/memory.stat", "anon 200000\nfile 100000\n");
  write("sys/fs/cgroup/a/b/memory.max", "max\n");
  EXPECT_EQ(machine_info(root.path()).memory_bytes, 500000u);
  EXPECT_EQ(machine_info(root.path()).available_bytes, 300000u);
}

TEST(MachineInfo, OfThisMachine) {
  const MachineInfo info = machine_info();
  EXPECT_FALSE(info.processor.empty());
  EXPECT_GT(info.memory_bytes, info.available_bytes);
  EXPECT_GT(info.available_bytes, 0u);
}

}  // namespace
}  // namespace nibble
