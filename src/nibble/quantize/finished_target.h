// A target that is finished already: it is left alone if it is what this run would make, and refused otherwise.
#pragma once

#include <string>
#include <vector>

#include "nibble/base/error.h"
#include "nibble/quantize/output_plan.h"
#include "nibble/quantize/side_files.h"

namespace nibble {

// The target's manifest; Error that offers --restart if it cannot be read.
Json finished_manifest(const Path& path);
Error damaged_manifest(const Path& path, const std::string& reason);

// Throws if `manifest`, the target's, is of another recipe, contract version or source, if its shards are not all
// there, or if what lies beside them is not what the source gives (`beside`: all that belongs there, the index with
// it). The source's content is compared (which reads it once) only if one of its files is younger than the manifest.
// Returns what is missing beside the shards, which can be written without them.
std::vector<SideFile> check_finished(const Json& manifest, const Json& recipe, const Checkpoint& source,
                                     const OutputPlan& plan, const std::vector<SideFile>& beside, const Path& target);

}  // namespace nibble
