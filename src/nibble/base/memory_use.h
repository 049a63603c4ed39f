// What this process takes of the machine's memory.
#pragma once

#include <cstdint>

namespace nibble {

// The most that it had at once so far (VmHWM): mapped pages included. 0 where the system does not say.
uint64_t peak_rss_bytes();

}  // namespace nibble
