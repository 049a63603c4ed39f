// A target that is finished already: it is left alone if it is what this run would make, and refused otherwise.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "nibble/quantize/output_plan.h"

namespace nibble {

// Throws if `manifest`, the target's, is of another recipe, contract version or source, or if its files are not all
// there. The source's content is compared (which reads it once) only if one of its files is younger than the manifest.
void check_finished(const Json& manifest, const Json& recipe, const Checkpoint& source, const OutputPlan& plan,
                    const std::vector<std::pair<std::string, std::string>>& side_texts, const Path& target);

// Removes what an earlier run finished in `target`: its index first and its manifest last, so that nothing of it can be
// loaded together with what comes now. Other files stay.
void remove_finished(const Path& target);

}  // namespace nibble
