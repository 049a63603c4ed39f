// The most memory that this process held at a time, mapped pages included, as the system counts it.
#pragma once

#include <cstdint>

namespace nibble {

// Bytes; 0 if the system does not say.
uint64_t peak_memory_bytes();
// Counts anew from here, where the system can.
void forget_peak_memory();

}  // namespace nibble
