// All logical weights of a checkpoint: stored names split into modules, conventions asked in list order, the rest
// dense. 500,000 stored tensors in well under a second. Rules reported: unmatched-part (a scale without a weight, a
// weight whose partner is missing), bad-shape, unsupported (a layout that is refused by name), config-contradiction,
// mixed (FORMATS §11).
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "nibble/checkpoint/convention.h"

namespace nibble {

class WeightTable {
 public:
  static WeightTable build(const Checkpoint& checkpoint, Findings* findings);
  const std::vector<Weight>& weights() const { return weights_; }
  std::vector<Weight>& weights() { return weights_; }
  // Index, or -1.
  int64_t find(std::string_view name) const;
  // After names were changed (models/ gives GGUF's weights the names of Hugging Face): find() knows the present ones.
  // Of two weights with one name it finds the first.
  void reindex();
  const QuantHints& hints() const { return hints_; }

 private:
  std::vector<Weight> weights_;
  std::unordered_map<std::string_view, uint32_t> by_name_;
  QuantHints hints_;
};

// Rows of a weight in logical orientation and plain row order, whatever row_order says: reads whole slices where
// needed.
EncodedMatrix read_rows(const Checkpoint& checkpoint, const Weight& weight, uint64_t slice, uint64_t row_begin,
                        uint64_t rows);
// The same decoded to float32, (rows, K) contiguous.
std::vector<float> read_rows_f32(const Checkpoint& checkpoint, const Weight& weight, uint64_t slice, uint64_t row_begin,
                                 uint64_t rows);

}  // namespace nibble
