// What a plan does that the user did not choose and may not expect: said on standard error and in the report.
#pragma once

#include <string>
#include <vector>

#include "nibble/quantize/output_plan.h"

namespace nibble {

std::vector<std::string> plan_notes(const OutputPlan& plan, const Model& model, const QuantizeRequest& request);

}  // namespace nibble
