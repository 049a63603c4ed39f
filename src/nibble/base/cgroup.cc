#include "nibble/base/cgroup.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <string_view>

#include "nibble/base/strings.h"

namespace nibble {
namespace {

// Version 2: "max 100000" or "150000 100000". `max` is not a number, so reading it fails as it should.
std::optional<double> quota_of(const Path& folder) {
  double quota = 0;
  double period = 0;
  std::ifstream(folder / "cpu.max") >> quota >> period;
  if (quota <= 0) {  // version 1, where -1 is no limit
    std::ifstream(folder / "cpu.cfs_quota_us") >> quota;
    std::ifstream(folder / "cpu.cfs_period_us") >> period;
  }
  if (quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

// From the group up to the root of its hierarchy. Inside a container the group's own path is often not mounted; its
// limit then stands at the root.
void apply(const Path& hierarchy, const Path& group, std::optional<double>& smallest) {
  Path folder = group.relative_path();
  while (true) {
    if (const auto quota = quota_of(hierarchy / folder)) smallest = std::min(*quota, smallest.value_or(*quota));
    if (folder.empty()) return;
    folder = folder.parent_path();
  }
}

}  // namespace

std::optional<double> cpu_quota(const Path& root) {
  std::optional<double> smallest;
  std::ifstream groups(root / "proc/self/cgroup");
  // "0::/user.slice" (version 2) or "4:cpu,cpuacct:/docker/1f" (version 1).
  for (std::string line; std::getline(groups, line);) {
    const auto fields = split(line, ':');
    if (fields.size() < 3) continue;
    const Path group(line.substr(static_cast<size_t>(fields[2].data() - line.data())));
    const auto controllers = split(fields[1], ',');
    if (fields[1].empty()) {
      apply(root / "sys/fs/cgroup", group, smallest);
    } else if (std::find(controllers.begin(), controllers.end(), std::string_view("cpu")) != controllers.end()) {
      apply(root / "sys/fs/cgroup" / Path(fields[1]), group, smallest);
      apply(root / "sys/fs/cgroup/cpu", group, smallest);
    }
  }
  return smallest;
}

}  // namespace nibble
