// How each output gets its bytes: in which layout and format, and by which route. What is impossible is refused here,
// before anything is made.
#pragma once

#include "nibble/quantize/output_plan.h"

namespace nibble {

// The one that was asked for; else that of the library whose bytes are wanted, the source's own, the family's own, or
// the default one. Null for dense targets. Error if it cannot hold the format.
const Convention* choose_layout(const Model& model, const QuantizeRequest& request);

// The type of the model's weights: what 16-bit scales and decoded weights are stored in.
Element model_dtype_of(const Checkpoint& source, const Model& model, const QuantizeRequest& request);

// Fills in what every output needs beyond its name, shape and pieces. The plan's layout and model_dtype are set.
// Errors: a selected weight that the format cannot hold (tensor, K, group, legal groups), a source that cannot be
// decoded, options that the first weight to be rounded would refuse.
void choose_routes(const Checkpoint& source, const Model& model, const QuantizeRequest& request, OutputPlan* plan);

}  // namespace nibble
