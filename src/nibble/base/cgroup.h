// How much processor time the control groups of this process leave it: a container on a machine of 128 processors may
// own 2 of them, and 128 threads would then only wait for each other.
#pragma once

#include <optional>

#include "nibble/base/file.h"

namespace nibble {

// The smallest quota of the process' group and its parents, in processors (1.5 is one and a half); nullopt without one.
// Reads versions 1 and 2 below `root`, which is "/" but for tests.
std::optional<double> cpu_quota(const Path& root = "/");

}  // namespace nibble
