// Casts between low-bit formats that lose nothing (FORMATS.md §2.2, §6.3): MXFP4 -> NVFP4, and FP4 -> MXFP8 and FP8.
// Each is possible for some matrices only, which convert() finds out: a cast is exact if the target decodes (decode.h)
// to the same float32 numbers. It is one row of a list inside recast.cc; the caller decides what to do when it is not
// exact (a scale for each matrix instead of a shared one, refuse, or round through float32).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nibble/numerics/encoded.h"

namespace nibble {

// Exponents of the blocks that hold a non-zero code; `low > high` when all are zero.
struct ExponentSpan {
  int low = 1 << 20, high = -(1 << 20);
  void add(const ExponentSpan& other);
  bool empty() const { return low > high; }
};

// A second-level scale of the target that several matrices may share: chosen from the spans of all of them.
struct SharedScale {
  int max_span;  // high - low that is still exact under one scale
  ExponentSpan (*scan)(const EncodedView& in);
  TensorScale (*choose)(const ExponentSpan& span, SecondLevel level);
};

// The first values that a cast would change: the part of the matrix under one scale of the target, and why.
struct Inexact {
  uint64_t row = 0, column = 0;  // where that part begins
  std::string reason;
  std::vector<std::pair<std::string, double>> values;
};

struct ExactRecast {
  const char* from;  // format family patterns
  const char* to;
  const SharedScale* shared;  // null: every scale of the target belongs to one matrix, and convert() chooses it
  // Converts a whole matrix; nullopt if nothing was lost. `scale` is the shared one, if there is any.
  std::optional<Inexact> (*convert)(const EncodedView& in, const TensorScale& scale, const MutableEncodedView& out);
};

// null if there is no exact cast between the two.
const ExactRecast* exact_recast(const Format& from, const Format& to);

// For the list: FP4 with block scales of a byte to E4M3 under the target's own scales.
std::optional<Inexact> recast_fp4_to_e4m3(const EncodedView& in, const TensorScale&, const MutableEncodedView& out);

}  // namespace nibble
