// The recipe: what decides the output's bytes besides the source and the contract version. Written into the journal
// (compared on resume) and into the manifest; read back from there to make the same bytes again.
#pragma once

#include <string>

#include "nibble/base/json.h"
#include "nibble/quantize/output_plan.h"

namespace nibble {

// Complete: read_recipe and the same source give the same plan and the same bytes.
Json recipe_json(const Model& model, const OutputPlan& plan, const QuantizeRequest& request);

struct Recipe {
  std::string family;       // of the source
  QuantizeRequest request;  // source, target and whatever changes no byte are left as they are by default
};

// The way back. A recipe comes from a file, so it is untrusted: Error (file `source_name`, the field) for a field that
// is missing, unknown, of another type, or names what this nibble cannot write.
Recipe read_recipe(const Json& recipe, const std::string& source_name);

}  // namespace nibble
