// What quantize writes around the tensors, compared byte by byte: shard headers, index, configuration, companions.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "nibble/checkpoint/checkpoint.h"
#include "nibble/quantize/output_plan.h"
#include "nibble/verify/verify.h"

namespace nibble {

// One finding a file that differs or is missing; adds to bytes, differing and differing_bytes of `sums`.
void compare_headers(const Path& folder, const OutputPlan& plan, const Checkpoint& base, Rederived* sums,
                     Findings* findings);
void compare_index(const Path& folder, const OutputPlan& plan, const Checkpoint& base, Rederived* sums,
                   Findings* findings);
// `texts`: side_texts of the plan. The rest of the companions must be as in `base`.
void compare_side_files(const Path& folder, const Checkpoint& base,
                        const std::vector<std::pair<std::string, std::string>>& texts, Rederived* sums,
                        Findings* findings);

}  // namespace nibble
