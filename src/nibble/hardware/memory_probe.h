// How fast memory is read by all threads together.
#pragma once

#include <cstdint>
#include <string>

#include "nibble/hardware/device.h"
#include "nibble/hardware/probes.h"

namespace nibble {

inline constexpr uint64_t kProbePage = uint64_t{2} << 20;  // a huge one

struct MemoryRate {
  MeasuredRange read;  // of the way of reading that reached most
  uint64_t bytes = 0;  // that were read again and again
  std::string how;
};

// What no cache can hold much of: four times the largest; 0 where the system does not know its caches.
uint64_t bytes_beyond_caches();

// Fills at most `max_bytes` (a multiple of kProbePage) while a part of `seconds` lasts, but at least `least_bytes` of
// them however long that takes, and reads them in each way of `probes` for the rest. std::bad_alloc if the memory
// cannot be had.
MemoryRate memory_read_rate(const Probes& probes, uint64_t max_bytes, double seconds, int threads,
                            uint64_t least_bytes = 0);

}  // namespace nibble
