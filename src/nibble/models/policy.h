// What the field leaves in 16 or 32 bits, by role (FORMATS.md §10). The quantizer's defaults and verify's warnings ask
// here, not in names.
#pragma once

#include "nibble/models/family.h"

namespace nibble {

enum class Keep16 : uint8_t {
  kAlways,   // no release quantizes it: norms, routers, embeddings, biases, sinks, MTP's glue
  kUsually,  // some do: the head, attention, shared experts, dense layers, latent projections
  kFree,     // what four-bit releases quantize: routed experts
};

Keep16 keep16_by_role(Role role);
// The same with what the parameter itself says: vectors stay, MTP's experts and MLPs go as other layers'.
Keep16 keep16(const ParamSpec& param);

}  // namespace nibble
