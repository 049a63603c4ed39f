// What Kimi-K2.5 and GLM with latent attention share with DeepSeek-V3: their text models are one, under another prefix
// or with other defaults.
#pragma once

#include <cstdint>
#include <optional>

#include "nibble/models/families/common_config.h"

namespace nibble {

// Everything but family, prefix, indexers and the sizes that parse_decoder read. `default_dense`: as of
// parse_dense_first.
void parse_deepseek_text(const ConfigReader& config, ModelSpec* spec,
                         std::optional<uint64_t> default_dense = std::nullopt);
// Indexers where the layers have them; MTP layers have one of their own if any layer has.
void visit_deepseek_text(const ModelSpec& spec, const ParamVisitor& visit);

}  // namespace nibble
