// Trained weights as checkpoints on disk.
#pragma once

#include <vector>

#include "nibble/base/file.h"
#include "nibble/base/json.h"
#include "nibble/train/loop/config.h"
#include "nibble/train/model/trained_tensors.h"

namespace nibble {

// The configuration of the 16-bit checkpoint: the source's without what it says about low bits.
Json dense_config(const Json& source);

// The weights in BF16 at `folder`, with `companions` (tokenizer and the like) beside them. What is there is replaced.
void export_dense(const Path& folder, const Json& config, const std::vector<Path>& companions,
                  const TrainedTensors& tensors);

// `dense` quantized into `folder` by `nibble quantize`'s own pipeline. What is there is replaced.
void export_packed(const Path& dense, const Path& folder, const TrainedTensors& tensors, const RoundingConfig& rounding,
                   int threads);

}  // namespace nibble
