// How many bytes a tensor of a shape takes in a safetensors file, refused where the container's rules are broken: the
// product overflows, or elements narrower than a byte do not fill whole bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "nibble/base/error.h"
#include "nibble/checkpoint/dtype.h"

namespace nibble {

// Error names the tensor and the numbers; the caller adds the file.
uint64_t tensor_bytes(const std::string& name, Dtype dtype, std::span<const uint64_t> shape);

}  // namespace nibble
