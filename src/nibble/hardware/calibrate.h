// Measures the machine it runs on, in bounded time and memory: what `nibble bench --calibrate` writes. A figure is what
// was reached, so it is below what a vendor calls the peak; ranges are lowest and highest of repeated passes.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "nibble/base/file.h"
#include "nibble/hardware/device.h"

namespace nibble {

struct CalibrateOptions {
  double seconds = 10;                     // about, in all
  uint64_t max_bytes = uint64_t{1} << 30;  // of memory, and of the file; at most a quarter of what is available
  Path folder = {};                        // whose disk is measured; empty: none is
  int threads = 0;                         // 0: default_threads()
  uint64_t least_bytes = 0;                // of memory, however long it takes; as far as max_bytes allows
};

// A device of kind kCpu whose `sources` say how each figure was measured, or why it was not. Its peaks are the highest
// measurements. `progress` hears what is being done. Error for options out of range and for a folder that cannot be
// written to.
Device calibrate(const CalibrateOptions& options, const std::function<void(std::string_view)>& progress);

}  // namespace nibble
