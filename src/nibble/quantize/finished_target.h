// A target that is finished already: it is left alone if it is what this run would make, and refused otherwise.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "nibble/base/error.h"
#include "nibble/quantize/output_plan.h"

namespace nibble {

// The target's manifest; Error that offers --restart if it cannot be read.
Json finished_manifest(const Path& path);
Error damaged_manifest(const Path& path, const std::string& reason);

// Throws if `manifest`, the target's, is of another recipe, contract version or source, or if its files are not all
// there. The source's content is compared (which reads it once) only if one of its files is younger than the manifest.
void check_finished(const Json& manifest, const Json& recipe, const Checkpoint& source, const OutputPlan& plan,
                    const std::vector<std::pair<std::string, std::string>>& side_texts, const Path& target);

}  // namespace nibble
