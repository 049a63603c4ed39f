// What a tensor is that no family lists, as far as its name says it beyond doubt: the bias of a known module, a
// KV-cache scale, a rotary table, a further tensor of an MTP layer.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "nibble/models/family.h"

namespace nibble {

// The parameter matched under a name, or null.
using FindParam = std::function<const ParamSpec*(std::string_view name)>;

// Role, layer, projection of a tensor called `name`; nullopt if it is unknown. `shape` is what is stored.
std::optional<ParamSpec> classify_leftover(const ModelSpec& spec, std::string_view name, const FindParam& find);

// Whether a tensor of this name is a scale of the KV cache, in any of the spellings that are in use.
bool is_cache_scale(std::string_view name);

}  // namespace nibble
