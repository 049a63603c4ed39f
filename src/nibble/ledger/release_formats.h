// The formats in which a release stores its parameters, from what its configuration declares: what weigh() needs to
// count a release's bytes without its files.
#pragma once

#include "nibble/checkpoint/conventions/declared_formats.h"
#include "nibble/ledger/weights.h"

namespace nibble {

// For parameters as stacked_inventory() gives them, or in the release's own form. Roles that no release quantizes stay
// in the model's type; projections of a latent space do unless the settings name them. `spec` and `declared` must
// outlive the function.
FormatOf release_formats(const ModelSpec& spec, const DeclaredFormats& declared);

}  // namespace nibble
