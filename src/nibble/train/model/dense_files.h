// Master values from a checkpoint, in whatever form and format it holds them, and back into one of 16 bits.
#pragma once

#include "nibble/base/file.h"
#include "nibble/base/json.h"
#include "nibble/checkpoint/checkpoint.h"
#include "nibble/models/model.h"
#include "nibble/train/model/trained_tensors.h"

namespace nibble {

// Every parameter must be there, in shapes that its place has. Low-bit weights are decoded: training may go on from
// them. Tensors that are none of the model's are left aside. Error naming the tensor that is missing.
void read_values(const Checkpoint& checkpoint, const Model& model, TrainedTensors* tensors);

// A folder with config.json and one safetensors file, values rounded to BF16, to nearest even, in the form of the
// family's own releases: what nibble's reader, engine and `verify` take. `config` is written as it is.
void write_dense(const Path& folder, const Json& config, const TrainedTensors& tensors);

}  // namespace nibble
