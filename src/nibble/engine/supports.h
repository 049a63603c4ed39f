// Which models the engine runs. Families are named one by one: each was compared with the field's own implementation,
// and its sizes alone do not say that nothing else is in it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "nibble/models/model.h"

namespace nibble {

std::span<const std::string_view> supported_families();

// "" if the engine runs it; else what stands in the way.
std::string unsupported(const ModelSpec& spec);

// Error naming `source`, the family and what stands in the way, with the families that run.
void refuse_unsupported(const Model& model, const std::string& source);

}  // namespace nibble
