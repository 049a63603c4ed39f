#include "nibble/engine/memory_check.h"

#include "nibble/base/error.h"
#include "nibble/base/strings.h"
#include "nibble/engine/weights/linear.h"

namespace nibble {

uint64_t resident_bytes(const Checkpoint& checkpoint, const Model& model) {
  uint64_t sum = 0;
  for (size_t i = 0; i < model.params.size(); ++i) {
    const Weight& weight = model.table.weights()[i];
    const Role role = model.params[i].role;
    // Other parts of a release (a vision tower) are not read; vectors are small.
    if (role == Role::kUnknown || role == Role::kMtp || weight.shape.size() < 2 || weight.opaque) continue;
    sum += weight.slices() * layout_of(checkpoint, weight, weight.rows()).bytes();
  }
  return sum;
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
