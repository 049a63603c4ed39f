// `nibble verify`: proves that a checkpoint is whole, consistent and read the right way, without running it.
//
// Readers and models/ report what headers and configuration show (their findings come first); then one pass over the
// bytes fills a WeightStats per weight (weight_stats.h), and every rule of rule_list.cc judges headers and statistics.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nibble/base/file.h"
#include "nibble/base/finding.h"

namespace nibble {

struct VerifyOptions {
  std::optional<Path> against;  // BASE: the 16-bit (or any readable) checkpoint this one was made from
  bool rederive = false;        // quantize again from BASE as the manifest's recipe says, and compare bytes
  bool quick = false;           // headers, scales and a sample of the codes
  uint64_t tp = 1, ep = 1;
  bool allow_trailing = false;
  int threads = 1;
  bool quiet = false;
};

// One matrix compared with BASE (against.h). A stack of experts has one row per expert, a fused gate and up two.
struct AgainstRow {
  std::string name;  // the weight's, with "[expert] gate" behind it for a part of a stack
  std::string format;
  int32_t layer = -1;
  uint32_t weight = 0;   // index into the model's table
  bool rounded = false;  // its format is not the base's: an error is expected
  double rel_rmse = 0, snr_db = 0;
  double expected_rel_rmse = 0;  // what the format gives on these base weights with `rule`
  // The recorded one, or the format's default; "" where no rule is at work. Where neither is known to have been used
  // and the default does not explain the error, the worst of the format's rules, and `default_rel_rmse` is the
  // default's.
  std::string rule;
  std::optional<double> default_rel_rmse;
  // Expected under a second-level scale that is shared with larger matrices, where its own would not explain the error.
  bool shared_scale = false;
  // No further from BASE than the recorded rule, or any of the format's where none is recorded, gives or takes a tenth:
  // the explained error leaves room for a calibration, and so for a fault in some scales.
  bool near_a_rule = false;
  // --unify-scales: the error that the manifest's record of a changed second-level scale explains by itself. The
  // expected error holds it.
  std::optional<double> change_rel_rmse;
  // And BASE is what was changed: the distance to what the record makes of it, which should be none.
  std::optional<double> off_record;
  std::string problem;  // "" or why it could not be compared
};

// What --rederive has compared (rederive.h).
struct Rederived {
  uint64_t tensors = 0, bytes = 0;  // stored tensors; bytes of tensors, headers and the files beside them
  uint64_t differing = 0;           // tensors and files that differ, are missing or could not be made again
  uint64_t differing_bytes = 0;
  double seconds = 0;
};

struct VerifyReport {
  bool ok = true;  // no finding of severity error
  Findings findings;
  std::vector<AgainstRow> against;
  std::optional<Rederived> rederived;  // absent if not asked for, or impossible (then a finding says why)
  uint64_t tensors = 0, bytes = 0;     // stored tensors, bytes that were read
  double seconds = 0;
};

// Throws only if `path` (or options.against) is no checkpoint at all; whatever is wrong inside becomes a finding, bad
// configurations, unreadable bytes and hostile headers included. Findings are sorted, and grouped beyond 20 of one kind
// (finding_list.h).
VerifyReport verify(const Path& path, const VerifyOptions& options);

}  // namespace nibble
