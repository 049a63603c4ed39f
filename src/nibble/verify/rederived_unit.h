// One unit of the output, made again and compared: its tensors byte by byte, its rows of the manifest, the hashes of
// its inputs.
#pragma once

#include <cstdint>
#include <string>

#include "nibble/base/finding.h"
#include "nibble/quantize/unit_encoder.h"
#include "nibble/verify/recorded_run.h"
#include "nibble/verify/stored_parts.h"

namespace nibble {

struct RederiveContext {
  EncodeContext encode;
  const RecordedRun* run = nullptr;
  const Checkpoint* stored = nullptr;
  const StoredParts* parts = nullptr;
  bool same_tool = true;  // false: rows of the manifest may be worded otherwise
};

struct UnitOutcome {
  Findings findings;
  uint64_t tensors = 0, bytes = 0;  // compared
  uint64_t differing = 0, differing_bytes = 0;
  uint64_t unrecorded = 0;  // outputs without a row in the manifest
  std::string first_unrecorded;
};

// Never throws for what is in the files: an input that cannot be read or encoded is a finding, and all tensors of the
// unit count as differing.
UnitOutcome rederive_unit(const RederiveContext& context, const Unit& unit);

}  // namespace nibble
