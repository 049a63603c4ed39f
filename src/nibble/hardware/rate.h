// How much a second all threads do together.
#pragma once

#include <functional>

#include "nibble/hardware/device.h"

namespace nibble {

// Each of `threads` calls `work(thread)`, which returns how much it did, again and again until `seconds` are over, at
// least once. They begin together; the sum of their own rates is returned.
double rate_of(int threads, double seconds, const std::function<double(int thread)>& work);
// Lowest and highest of `passes`.
MeasuredRange rates_of(int passes, int threads, double seconds, const std::function<double(int thread)>& work);

}  // namespace nibble
