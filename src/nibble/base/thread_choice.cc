#include "nibble/base/thread_choice.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>

#include "nibble/base/cgroup.h"

namespace nibble {
namespace {

constexpr int kMostProcessors = 1 << 16;

// What the hardware threads of a core have in common: the list of them.
std::string core_of(int processor, const Path& root) {
  const Path folder = root / "sys/devices/system/cpu" / fmt::format("cpu{}", processor) / "topology";
  for (const char* name : {"core_cpus_list", "thread_siblings_list"}) {
    std::string list;
    if (std::getline(std::ifstream(folder / name), list) && !list.empty()) return list;
  }
  return std::to_string(processor);
}

std::string counted(uint64_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

}  // namespace

std::vector<int> processors_in_mask() {
  std::vector<int> processors;
  // The kernel refuses a mask that is too small for the machine, and cpu_set_t ends at 1,024.
  for (int size = CPU_SETSIZE; size <= kMostProcessors; size *= 2) {
    std::vector<cpu_set_t> mask(static_cast<size_t>(size / CPU_SETSIZE));
    const size_t bytes = mask.size() * sizeof(cpu_set_t);
    if (sched_getaffinity(0, bytes, mask.data()) != 0) continue;
    for (int i = 0; i < size; ++i) {
      if (CPU_ISSET_S(static_cast<size_t>(i), bytes, mask.data())) processors.push_back(i);
    }
    break;
  }
  return processors;
}

ThreadChoice choose_threads(std::span<const int> processors, const Path& root) {
  std::set<std::string> cores;
  for (const int processor : processors) cores.insert(core_of(processor, root));
  ThreadChoice choice;
  choice.threads = std::max(1, static_cast<int>(cores.size()));
  choice.reason = counted(cores.size(), "core");
  if (cores.size() != processors.size())
    choice.reason += fmt::format(", of {} that this process may use", counted(processors.size(), "processor"));
  const std::optional<double> quota = cpu_quota(root);
  if (quota && *quota < choice.threads) {
    choice.threads = std::max(1, static_cast<int>(std::ceil(*quota)));
    choice.reason += fmt::format("; a control group gives this process the time of {:.3g}", *quota);
  }
  return choice;
}

}  // namespace nibble
