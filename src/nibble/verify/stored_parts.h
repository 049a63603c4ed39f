// Where a checkpoint holds the tensors of a plan. They are found by name: a folder that was cut into other files still
// holds them, and that is one finding, not one a tensor.
#pragma once

#include <cstdint>
#include <vector>

#include "nibble/base/finding.h"
#include "nibble/checkpoint/checkpoint.h"
#include "nibble/quantize/output_plan.h"

namespace nibble {

class StoredParts {
 public:
  // Findings (rule `rederive`): tensors that are missing, that the plan does not have, of another type or shape, in
  // other files.
  StoredParts(const Checkpoint& stored, const OutputPlan& plan, const Checkpoint& base, Findings* findings);

  // Null if the part is not there, or not with this type and shape.
  const StoredTensor* find(uint32_t out, size_t part) const { return parts_[out][part]; }
  // Parts for which find() is null, and tensors that nobody asked for.
  uint64_t unmatched() const { return unmatched_; }
  // False if tensors lie in other files than planned: then headers and the index cannot be those of the plan.
  bool same_files() const { return elsewhere_ == 0; }

 private:
  const StoredTensor* match(const TensorDecl& planned, Findings* findings);
  void report_names(const std::vector<std::string>& names, const std::string& message, Findings* findings);
  void report_elsewhere(Findings* findings) const;

  const Checkpoint& stored_;
  const OutputPlan& plan_;
  std::vector<std::vector<const StoredTensor*>> parts_;
  std::vector<std::string> missing_;
  uint64_t unmatched_ = 0, elsewhere_ = 0;
  std::string first_elsewhere_, planned_file_, stored_file_;  // of the first such tensor
};

}  // namespace nibble
