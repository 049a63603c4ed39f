// The comparison's rows for a model: its weights as released, and in the formats asked for.
#pragma once

#include <vector>

#include "nibble/numerics/format.h"
#include "nibble/plan/format_row.h"
#include "nibble/plan/subject.h"

namespace nibble {

FormatSize size_of(const ModelSpec& spec, const std::vector<WeightItem>& items);

struct ModelRow {
  FormatRow row;
  Format format;                  // of the routed experts
  std::vector<WeightItem> items;  // empty if row.refused
};

// `formats`: names; "released" is the release's own, whatever it is; others are those that `nibble quantize` makes. One
// that is impossible is a refused row if there are several, else an Error.
std::vector<ModelRow> model_rows(const Subject& subject, const std::vector<std::string>& formats);

}  // namespace nibble
