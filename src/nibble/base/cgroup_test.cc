#include "nibble/base/cgroup.h"

#include <gtest/gtest.h>

#include "nibble/testing/temp_dir.h"

namespace nibble {
namespace {

// A file system root with the files of the kernel that a test gives it.
class CpuQuota : public ::testing::Test {
 protected:
  void put(const std::string& name, const std::string& text) {
    std::filesystem::create_directories((root_ / name).parent_path());
    write_atomically(root_ / name, text);
  }
  std::optional<double> quota() const { return cpu_quota(root_.path()); }

 private:
  testing::TempDir root_;
};

TEST_F(CpuQuota, NothingThere) { EXPECT_EQ(quota(), std::nullopt); }

TEST_F(CpuQuota, Version2) {
  put("proc/self/cgroup", "0::/user.slice/job\n");
  EXPECT_EQ(quota(), std::nullopt);
  put("sys/fs/cgroup/user.slice/job/cpu.max", "max 100000\n");
  EXPECT_EQ(quota(), std::nullopt);
  put("sys/fs/cgroup/user.slice/job/cpu.max", "150000 100000\n");
  EXPECT_EQ(quota(), 1.5);
}

TEST_F(CpuQuota, Version2TakesTheSmallestOfAllParents) {
  put("proc/self/cgroup", "0::/a/b/c\n");
  put("sys/fs/cgroup/a/b/c/cpu.max", "800000 100000\n");
  put("sys/fs/cgroup/a/cpu.max", "200000 100000\n");
  put("sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_EQ(quota(), 2.0);
}

TEST_F(CpuQuota, Version2InAContainer) {  // the path is the host's, the limit stands at the root
  put("proc/self/cgroup", "0::/docker/1f2e\n");
  put("sys/fs/cgroup/cpu.max", "400000 100000\n");
  EXPECT_EQ(quota(), 4.0);
}

TEST_F(CpuQuota, Version1) {
  put("proc/self/cgroup", "12:memory:/job\n4:cpu,cpuacct:/job\n1:name=systemd:/x\n");
  put("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
  put("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), std::nullopt);
  put("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "250000\n");
  EXPECT_EQ(quota(), 2.5);
}

TEST_F(CpuQuota, Version1MountedAsCpu) {
  put("proc/self/cgroup", "4:cpuacct,cpu:/docker/77\n");
  put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n");
  put("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 0.5);
}

TEST_F(CpuQuota, GarbageIsNoLimit) {
  put("proc/self/cgroup", "garbage\n0::\n:\n0::/../../x\n");
  put("sys/fs/cgroup/cpu.max", "lots\n");
  EXPECT_EQ(quota(), std::nullopt);
}

}  // namespace
}  // namespace nibble
