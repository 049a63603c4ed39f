// How fast files are read that are not in memory yet.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "nibble/base/file.h"
#include "nibble/hardware/device.h"

namespace nibble {

struct DiskRate {
  std::optional<MeasuredRange> read;  // absent: `how` says why
  std::string how;
};

// Writes a file of at most `max_bytes` into `folder` while a third of `seconds` lasts, and reads it from front to back
// for the rest, dropped from the page cache before each pass, by up to four threads. The file is gone afterwards, also
// if this throws. Error if the folder cannot be written to.
DiskRate disk_read_rate(const Path& folder, uint64_t max_bytes, double seconds, int threads);

}  // namespace nibble
