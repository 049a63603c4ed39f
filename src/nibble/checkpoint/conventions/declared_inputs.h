// Which settings promise a stored scale of every quantized matrix' input ("static" activations): loaders that go by
// them compute with whatever stands where the scale was not stored.
#pragma once

#include <optional>
#include <string>

#include "nibble/base/json.h"
#include "nibble/checkpoint/quant_hints.h"

namespace nibble {

struct DeclaredInputs {
  std::string key, value;  // the setting, as written: "quant_algo", "NVFP4"
};

// nullopt: nothing is promised, or not of all quantized matrices alike. `settings`: the object that `hints` were read
// from (null where they come from elsewhere: then only what the hints say counts).
std::optional<DeclaredInputs> declared_static_inputs(const QuantHints& hints, const Json* settings);

}  // namespace nibble
