#include "nibble/base/memory_use.h"

#include <fstream>
#include <string>

#include "nibble/base/strings.h"

namespace nibble {

uint64_t peak_rss_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (starts_with(line, "VmHWM:")) return std::stoull(line.substr(6)) * 1024;
  }
  return 0;
}

}  // namespace nibble
