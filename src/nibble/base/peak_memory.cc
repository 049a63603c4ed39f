#include "nibble/base/peak_memory.h"

#include <fstream>
#include <string>

#include "nibble/base/strings.h"

namespace nibble {

uint64_t peak_memory_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (starts_with(line, "VmHWM:")) return std::stoull(line.substr(6)) * 1024;
  }
  return 0;
}

void forget_peak_memory() {
  constexpr char kResetsThePeak = '5';
  std::ofstream("/proc/self/clear_refs") << kResetsThePeak;
}

}  // namespace nibble
