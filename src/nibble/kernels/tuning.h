// Which kernel was the quickest on this machine, by what is multiplied and by the number of tokens: what `nibble bench
// --tune` measured, in a file of the user's. All kernels of one layout give the same bits (panel.h), so a table changes
// speed alone, and a missing one costs nothing but that.
//
// The file is NIBBLE_TUNING where that is set ("none": no table is used), else tuning.json in nibble's folder of the
// user's cache. Rows for another processor, or for kernels that this program or processor does not have, are left out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nibble/base/file.h"
#include "nibble/base/json.h"
#include "nibble/kernels/kernel.h"

namespace nibble {

// Numbers of tokens share a choice with those of the same power of two: 1, 2 to 3, 4 to 7 … 512 and more.
inline constexpr uint64_t kTokenClasses = 10;
uint64_t token_class(uint64_t tokens);
constexpr uint64_t first_of_token_class(uint64_t index) { return uint64_t{1} << index; }

// What kernels tell apart: everything of a layout but the matrix' size. "e2m1/e8m0/32".
std::string layout_kind(const WeightLayout& layout);

struct TuningRow {
  std::string layout;  // layout_kind()
  ActivationKind activations = ActivationKind::kF32;
  uint64_t tokens = 1;  // the first of its class
  std::string kernel;
  double microseconds = 0;  // of the matrix that was measured
};

class TuningTable {
 public:
  // Replaces the row of the same layout, activations and tokens.
  void add(TuningRow row);
  // nullptr: nothing was measured.
  const TuningRow* find(std::string_view layout, ActivationKind activations, uint64_t tokens) const;
  const std::vector<TuningRow>& rows() const { return rows_; }

  Json json(const std::string& processor) const;
  // Error for what is no table, naming `source`. A table of another processor is empty.
  static TuningTable parse(const Json& json, const std::string& processor, const std::string& source);

 private:
  std::vector<TuningRow> rows_;
};

// nullopt: none is used.
std::optional<Path> tuning_file();
// This machine's, read once; empty where there is no such file yet. A file that is no table is an Error where
// NIBBLE_TUNING names it, else a warning.
const TuningTable& machine_tuning();

}  // namespace nibble
