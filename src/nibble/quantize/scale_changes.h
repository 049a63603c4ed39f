// What --unify-scales has changed in one output, every block scale of it: since a stored scale's new value follows from
// its old one and the two second-level scales, a table of (old, new, how many blocks) says it all and stays small.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "nibble/base/json.h"

namespace nibble {

struct SecondScaleChange {
  uint64_t slice = 0;      // of a stack of matrices
  float from = 0, to = 0;  // as the source stores them
  friend bool operator==(const SecondScaleChange&, const SecondScaleChange&) = default;
};

struct ScaleChanges {
  std::vector<SecondScaleChange> second_scales;            // of slices that got another one; ascending
  std::map<std::pair<uint8_t, uint8_t>, uint64_t> blocks;  // stored E4M3 (old, new) -> blocks, where they differ
  double largest_relative_change = 0;                      // of a block's effective scale, |new / old - 1|

  uint64_t changed() const;  // blocks whose stored scale changed
  void add(const ScaleChanges& other, uint64_t slice);
  friend bool operator==(const ScaleChanges&, const ScaleChanges&) = default;
};

// The manifest's fields of it: `changed_scales`, `largest_scale_change`, `second_scales` and `scale_changes`.
void add_scale_changes(const ScaleChanges& changes, Json* row);
// Back from a manifest's row; empty if it has no such fields, Error if they are malformed.
ScaleChanges read_scale_changes(const Json& row, const std::string& source_name);
// At most this many bytes of a row, for `slices` matrices.
uint64_t scale_changes_bytes(uint64_t slices);

}  // namespace nibble
