// Whether a target can be written at all: asked before anything is.
#pragma once

#include "nibble/quantize/output_plan.h"

namespace nibble {

// Error if it is the source, no folder, or a folder that holds anything but what a run of this program left.
void check_target(const Path& target, const Path& source_folder);

// Error if the disk lacks room for the plan's shards and `other_bytes` more. What is there already is not needed again.
void check_space(const Path& target, const OutputPlan& plan, uint64_t other_bytes);

}  // namespace nibble
