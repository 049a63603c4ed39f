// Whether a model fits into memory, asked before its weights are read.
#pragma once

#include <cstdint>
#include <string>

#include "nibble/checkpoint/checkpoint.h"
#include "nibble/models/model.h"

namespace nibble {

// Bytes of the model's matrices in memory, tiles and scales. Error naming the weight where no kernel multiplies its
// format, with the command that converts it.
uint64_t resident_bytes(const Checkpoint& checkpoint, const Model& model);

// The same of the largest thing that a streamed pass (score.h) holds at once: a layer, the embedding or the head.
uint64_t largest_layer_bytes(const Checkpoint& checkpoint, const Model& model);

// Error with the numbers if `bytes` are more than `available` (0: not known).
void check_memory(const std::string& source, uint64_t bytes, uint64_t available);

}  // namespace nibble
