// Casts between low-bit formats that lose nothing (FORMATS.md §2.2, §6.3): MXFP4 -> NVFP4, MXFP4 -> MXFP8 and MXFP4 ->
// FP8. Each is possible while the block exponents under one shared scale span little enough. A cast is one row of a
// list inside recast.cc; the caller decides what to do when a span is too wide (two scales, refuse, or round through
// float32).
#pragma once

#include <cstdint>
#include <string>

#include "nibble/numerics/encoded.h"

namespace nibble {

// Exponents of the blocks that hold a non-zero code; `low > high` when all are zero.
struct ExponentSpan {
  int low = 1 << 20, high = -(1 << 20);
  void add(const ExponentSpan& other);
  bool empty() const { return low > high; }
};

struct ExactRecast {
  const char* from;  // format family patterns
  const char* to;
  int max_span;  // high - low that is still exact under one shared scale
  ExponentSpan (*scan)(const EncodedView& in);
  // The target's tensor-level scale for a group of matrices with this span (kNone where the target has none).
  TensorScale (*tensor_scale)(const Format& to, const ExponentSpan& span, SecondLevel level);
  // Converts rows; false if some block was not exact after all (2-D target blocks are judged one by one here).
  bool (*convert)(const EncodedView& in, const TensorScale& scale, const MutableEncodedView& out);
};

// null if there is no exact cast between the two.
const ExactRecast* exact_recast(const Format& from, const Format& to);

}  // namespace nibble
