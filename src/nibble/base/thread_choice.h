// How many threads are worth having: the processor cores that this process may use. Two hardware threads of a core
// share its vector units and caches, and a second one makes loops that wait for each other slower.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "nibble/base/file.h"

namespace nibble {

struct ThreadChoice {
  int threads = 1;
  std::string reason;  // "2 cores, of 4 processors that this process may use"
};

// Numbers of the processors in this thread's affinity mask, which a control group's cpuset narrows too; ascending.
std::vector<int> processors_in_mask();

// Cores below `root`/sys/devices/system/cpu that have one of `processors`; processors whose topology cannot be read
// count as cores of their own. No more than a control group gives time for (base/cgroup.h). At least one.
ThreadChoice choose_threads(std::span<const int> processors, const Path& root = "/");

}  // namespace nibble
