// Outcomes of several seeds as what `nibble train --experiment table-walk` prints.
#pragma once

#include <string>
#include <vector>

#include "nibble/train/experiments/table_walk.h"

namespace nibble {

// An object: `seeds` as the command line promises them, whose `ptq`, `qat` and `independent_prediction` are those of
// the first scheme, all of them in `schemes`; `setting`; `seconds`.
std::string table_walk_json(const TableWalkOptions& options, const std::vector<TableWalkOutcome>& outcomes);

// Rows: full precision, and each scheme rounded and trained; medians over seeds, with the least and the most.
std::string table_walk_text(const TableWalkOptions& options, const std::vector<TableWalkOutcome>& outcomes);

}  // namespace nibble
