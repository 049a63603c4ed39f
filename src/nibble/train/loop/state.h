// What a run needs to go on: master weights, both moments of the optimizer, the next step. One safetensors file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nibble/base/file.h"
#include "nibble/train/model/trained_tensors.h"

namespace nibble {

struct TrainState {
  uint64_t step = 0;        // the next one
  uint64_t updates = 0;     // that changed the weights: gradients that are no numbers change nothing
  std::string fingerprint;  // config_fingerprint()
  // One a tensor, in the order of TrainedTensors::list(); moments are empty where a tensor is not trained.
  std::vector<std::vector<float>> masters, first, second;
};

// Appears whole or not at all.
void write_state(const Path& path, const TrainedTensors& tensors, const TrainState& state);
// Error if the file is damaged, belongs to another model, or to a run with another fingerprint.
TrainState read_state(const Path& path, const TrainedTensors& tensors, const std::string& fingerprint);

}  // namespace nibble
