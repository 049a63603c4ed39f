// Experts change form between conventions: one tensor per expert and projection, or one stack per layer with gate and
// up interleaved. This turns the source's weights into output weights of the wanted form, as row mappings (Piece),
// without knowing how either is stored.
#pragma once

#include <vector>

#include "nibble/models/model.h"
#include "nibble/quantize/output_plan.h"
#include "nibble/quantize/policy.h"

namespace nibble {

struct FormRequest {
  ExpertForm form = ExpertForm::kAsSource;       // of layers whose experts are selected
  ExpertForm kept_form = ExpertForm::kAsSource;  // of the others: a GGUF's stacks are no form of the family's
  const std::vector<Decision>* decisions = nullptr;
};

// Every weight once: name, param, shape, pieces, reason and `selected` (as action kQuantized) are filled in; routes,
// formats and parts are output_plan's. Order: source order, a stack at the place of its first expert.
std::vector<OutWeight> arrange_outputs(const Model& model, const FormRequest& request);

}  // namespace nibble
