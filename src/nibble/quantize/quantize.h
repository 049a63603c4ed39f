// `nibble quantize`: one checkpoint in, a verified low-bit one out; streamed, resumable, byte-reproducible.
//
// The plan is made before weights are read, and refused before the target folder exists if anything cannot work:
// shapes, layout, space. Then shards are written one after another (each by all threads), each appearing whole; the
// journal remembers them; at the end come configuration, manifest and index. Same bytes for any thread count, worker
// count and number of resumes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nibble/quantize/request.h"
#include "nibble/quantize/scale_changes.h"

namespace nibble {

struct QuantizeRow {
  std::string name, role, action, reason, format;
  double rel_rmse = -1, snr_db = 0;  // rel_rmse < 0: nothing was rounded
  bool lossless = false;             // rounded without any error: snr is infinite
  std::string note;
  std::optional<ScaleChanges> scale_changes;  // --unify-scales, of weights that it concerns
};

struct QuantizeResult {
  std::string family, format, rule, layout;
  std::vector<QuantizeRow> tensors;
  std::vector<std::string> notes;
  uint64_t bytes_in = 0, bytes_out = 0;  // of weights; of shards
  uint64_t bytes_done = 0;               // input processed by this run (less after a resume)
  double seconds = 0;
  uint64_t peak_rss_bytes = 0;  // VmHWM, mapped pages included
  uint64_t buffer_bytes = 0;    // upper bound of what the pipeline holds beside one matrix per thread
  double input_gb_per_s = 0;
  bool finished = true;  // false: other workers still have shards to write
  uint64_t shards_left = 0;
  bool dry_run = false;
};

QuantizeResult quantize(const QuantizeRequest& request);

}  // namespace nibble
