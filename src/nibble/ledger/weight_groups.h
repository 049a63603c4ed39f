// Weights that are alike, counted instead of listed: a model has thousands of matrices of a few dozen kinds. What a
// layout makes of them is asked hundreds of times in a search.
#pragma once

#include <cstdint>
#include <vector>

#include "nibble/ledger/key_value_rows.h"
#include "nibble/ledger/weights.h"

namespace nibble {

struct WeightGroup {
  WeightItem item;  // one of them
  KeyValueRows kv;  // of it

  // How many of them the stage holds.
  uint64_t count(uint64_t stage, uint64_t stages) const;
  // The same of the one that has layers [first, last).
  uint64_t count_of_layers(uint64_t first, uint64_t last) const {
    return before[last] - before[first] + (first == 0 ? in_front : 0) + (last + 1 == before.size() ? at_end : 0);
  }

  std::vector<uint64_t> before;       // before[l]: how many lie in layers below l
  uint64_t in_front = 0, at_end = 0;  // outside the layers: with the first stage (embedding), with the last
};

// Of what GPUs hold: copies (WeightItem::is_copy) are left out.
class WeightGroups {
 public:
  WeightGroups(const ModelSpec& spec, const std::vector<WeightItem>& items);

  const std::vector<WeightGroup>& groups() const { return groups_; }
  // There is no head of its own: it is the embedding (the group with `in_front`), which the last stage has too.
  bool tied() const { return tied_; }
  // Bytes of everything once, but for MTP layers.
  uint64_t bytes() const { return bytes_; }

 private:
  std::vector<WeightGroup> groups_;
  bool tied_;
  uint64_t bytes_ = 0;
};

}  // namespace nibble
