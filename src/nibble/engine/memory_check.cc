#include "nibble/engine/memory_check.h"

#include <algorithm>
#include <map>

#include "nibble/base/error.h"
#include "nibble/base/strings.h"
#include "nibble/engine/weights/linear.h"

namespace nibble {

namespace {

// Calls use(parameter, bytes in memory) for every matrix that the engine holds.
template <typename Use>
void for_matrices(const Checkpoint& checkpoint, const Model& model, const Use& use) {
  for (size_t i = 0; i < model.params.size(); ++i) {
    const Weight& weight = model.table.weights()[i];
    const Role role = model.params[i].role;
    // Other parts of a release (a vision tower) are not read; vectors, and stacks of them, are small.
    if (role == Role::kUnknown || role == Role::kMtp || role == Role::kBias || weight.shape.size() < 2 || weight.opaque)
      continue;
    use(model.params[i], weight.slices() * layout_of(checkpoint, weight, weight.rows()).bytes());
  }
}

}  // namespace

uint64_t resident_bytes(const Checkpoint& checkpoint, const Model& model) {
  uint64_t sum = 0;
  for_matrices(checkpoint, model, [&](const ParamSpec&, uint64_t bytes) { sum += bytes; });
  return sum;
}

uint64_t largest_layer_bytes(const Checkpoint& checkpoint, const Model& model) {
  std::map<int32_t, uint64_t> layers;
  uint64_t most = 0;
  for_matrices(checkpoint, model, [&](const ParamSpec& param, uint64_t bytes) {
    if (param.layer >= 0) layers[param.layer] += bytes;
    most = std::max(most, param.layer < 0 ? bytes : layers[param.layer]);
  });
  return most;
}

void check_memory(const std::string& source, uint64_t bytes, uint64_t available) {
  if (available == 0 || bytes <= available) return;
  throw Error("the model is larger than the memory that is free")
      .file(source)
      .value("weights", human_bytes(bytes))
      .value("available", human_bytes(available))
      .way_out("take it in a format of fewer bits: nibble quantize")
      .way_out("nibble plan names machines that hold it");
}

}  // namespace nibble
