#include "nibble/hardware/machine_info.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>

#include "nibble/base/strings.h"

namespace nibble {
namespace {

// The text after "key   : " of the first line that has it.
std::string value_after(const Path& file, std::string_view key) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(':');
    if (!starts_with(line, key) || colon == std::string::npos) continue;
    const size_t from = line.find_first_not_of(" \t", colon + 1);
    if (from != std::string::npos) return line.substr(from);
  }
  return "";
}

// "MemTotal:       24534016 kB".
uint64_t kilobytes(const Path& file, std::string_view key) {
  uint64_t number = 0;
  std::istringstream(value_after(file, key)) >> number;
  return number * 1024;
}

// "max" is not a number, so reading it fails as it should.
std::optional<uint64_t> number_in(const Path& file) {
  uint64_t number = 0;
  if (!(std::ifstream(file) >> number)) return std::nullopt;
  return number;
}

// Pages of files, which are counted as used but make room when needed: "file 123" (version 2), "cache 123" (version 1).
uint64_t cached(const Path& stat, std::string_view wanted) {
  std::ifstream words(stat);
  std::string key;
  for (uint64_t number = 0; words >> key >> number;) {
    if (key == wanted) return number;
  }
  return 0;
}

struct GroupFiles {
  const char *limit, *used, *cached;
};

void apply(const Path& group, const GroupFiles& files, MachineInfo& info) {
  const auto limit = number_in(group / files.limit);
  if (!limit || *limit >= info.memory_bytes) return;  // version 1 says "none" by a number that no machine has
  info.memory_bytes = *limit;
  const uint64_t used = number_in(group / files.used).value_or(0);
  const uint64_t kept = used - std::min(used, cached(group / "memory.stat", files.cached));
  info.available_bytes = std::min(info.available_bytes, *limit - std::min(*limit, kept));
}

}  // namespace

MachineInfo machine_info(const Path& root) {
  MachineInfo info;
  info.processor = value_after(root / "proc/cpuinfo", "model name");
  if (info.processor.empty()) info.processor = "unknown processor";
  info.memory_bytes = kilobytes(root / "proc/meminfo", "MemTotal:");
  info.available_bytes = kilobytes(root / "proc/meminfo", "MemAvailable:");
  // Inside a container the group is the root of what is mounted; outside of one it is the process' own. Groups between
  // the two are looked at as well.
  std::ifstream groups(root / "proc/self/cgroup");
  std::string group = "/";
  for (std::string line; std::getline(groups, line);) {
    if (starts_with(line, "0::")) group = line.substr(3);
  }
  for (Path folder = Path(group).relative_path();; folder = folder.parent_path()) {
    apply(root / "sys/fs/cgroup" / folder, {"memory.max", "memory.current", "file"}, info);
    if (folder.empty()) break;
  }
  apply(root / "sys/fs/cgroup/memory", {"memory.limit_in_bytes", "memory.usage_in_bytes", "cache"}, info);
  return info;
}

}  // namespace nibble
