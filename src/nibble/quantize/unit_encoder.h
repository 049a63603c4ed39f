// Makes the bytes of one unit: steps through its slices, chooses the shared scales, encodes rows in chunks and hands
// every part's bytes to a sink. Which thread runs it, and in which order units run, changes nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nibble/numerics/quantizer.h"
#include "nibble/quantize/output_plan.h"
#include "nibble/quantize/scale_changes.h"

namespace nibble {

// How the note of such a weight begins.
inline constexpr std::string_view kRoundedInstead = "rounded, since a cast cannot be exact";

// What is known of an output weight once it has been made.
struct OutResult {
  ErrorSums errors;              // count 0: nothing was rounded
  ScaleChanges scale_changes;    // --unify-scales
  std::string note;              // what the plan could not know: "exact", "two second-level scales: …"
  bool rounded_instead = false;  // some slice of a cast to eight bits could not be exact: `note` says where and why
};

struct UnitResult {
  std::vector<OutResult> outs;                    // one per unit.outs
  std::map<uint32_t, std::string> tensor_hashes;  // source tensor -> XXH3-128
};

// Bytes for `part` of output `out` (index into the plan), `offset` bytes into the part. Called on the encoding thread.
using PartSink = std::function<void(uint32_t out, uint32_t part, uint64_t offset, std::span<const std::byte> bytes)>;

struct EncodeContext {
  const Checkpoint* source = nullptr;
  const Model* model = nullptr;
  const QuantizeRequest* request = nullptr;
  const OutputPlan* plan = nullptr;
  uint64_t keep_bytes = 0;   // how much of a step may be held to save a second read
  uint64_t chunk_bytes = 0;  // rows are encoded in chunks of about this much input
  std::function<void(uint64_t bytes)> progress;
};

// Memory: per thread one chunk of input, its codes and, for formats with a second-level scale, the matrices that share
// it (up to kKeepBytes / threads; larger ones are read twice). With 1 GiB as the bound for everything, half goes to
// keeping.
inline constexpr uint64_t kKeepBytes = uint64_t{512} << 20;
inline constexpr uint64_t kChunkBytes = uint64_t{1} << 20;

// Errors name the source file, the tensor and the place of a NaN or infinity, or why an exact cast is impossible.
UnitResult encode_unit(const EncodeContext& context, const Unit& unit, const PartSink& sink);

}  // namespace nibble
