// What the operating system says of the machine.
#pragma once

#include <cstdint>
#include <string>

#include "nibble/base/file.h"

namespace nibble {

struct MachineInfo {
  std::string processor;         // as the processor calls itself
  uint64_t memory_bytes = 0;     // of the machine, or of this process' control group where that is less
  uint64_t available_bytes = 0;  // of it, what can be had without swapping
};

// Reads below `root`, which is "/" but for tests. What cannot be found out is "unknown processor" or 0.
MachineInfo machine_info(const Path& root = "/");

}  // namespace nibble
