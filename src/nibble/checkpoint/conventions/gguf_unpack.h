// One block of a GGUF type into the canonical arrays. A type is a row of the list in gguf_unpack.cc.
#pragma once

#include <cstddef>
#include <cstdint>

#include "nibble/numerics/encoded.h"

namespace nibble {

struct GgufUnpacker {
  uint32_t type;  // ggml's number
  Format (*format)();
  // Block number `index` of the matrix, counted along the rows: rows are whole blocks.
  void (*unpack)(const std::byte* block, uint64_t index, EncodedMatrix* out);
};

// null for types that are not decoded.
const GgufUnpacker* gguf_unpacker(uint32_t type);

}  // namespace nibble
