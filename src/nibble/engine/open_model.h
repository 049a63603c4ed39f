// A checkpoint that the engine is to run.
#pragma once

#include <string>

#include "nibble/checkpoint/checkpoint.h"
#include "nibble/models/model.h"

namespace nibble {

struct OpenedModel {
  Checkpoint checkpoint;
  Model model;
};

// Reads headers and configuration. Error for the first thing that is wrong with them, and for a model that the engine
// does not run (supports.h).
OpenedModel open_model(const std::string& path, int threads);

}  // namespace nibble
