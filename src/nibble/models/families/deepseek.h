// What Kimi-K2.5 and GLM with latent attention share with DeepSeek-V3: their text models are one, under another prefix
// or with other defaults.
#pragma once

#include <string_view>

#include "nibble/models/families/common_config.h"

namespace nibble {

// Everything but family, prefix, indexers and the sizes that parse_decoder read. `default_dense`: first layers that are
// dense if the configuration does not say.
void parse_deepseek_text(const ConfigReader& config, ModelSpec* spec, uint64_t default_dense = 0);
// Indexers where the layers have them; MTP layers have one of their own if any layer has.
void visit_deepseek_text(const ModelSpec& spec, const ParamVisitor& visit);

}  // namespace nibble
