// The configurations that come with the program (data/models): what `plan NAME` knows without a file.
#pragma once

#include <span>
#include <string_view>

#include "nibble/base/embedded_file.h"

namespace nibble {

// config.json texts by name ("kimi-k2.5"), sorted.
std::span<const EmbeddedFile> bundled_models();
// Null if there is none of that name; case does not matter.
const EmbeddedFile* find_bundled_model(std::string_view name);

}  // namespace nibble
