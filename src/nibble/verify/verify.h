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
  bool rederive = false;        // quantize again from BASE (or the manifest's source) and compare bytes
  bool quick = false;           // headers, scales and a sample of the codes
  uint64_t tp = 1, ep = 1;
  bool allow_trailing = false;
  int threads = 1;
  bool quiet = false;
};

// Per weight, with --against.
struct AgainstRow {
  std::string name;
  std::string format;
  double rel_rmse = 0, snr_db = 0;
  double expected_rel_rmse = 0;  // what the format gives on these base weights with its default rule
};

struct VerifyReport {
  bool ok = true;  // no finding of severity error
  Findings findings;
  std::vector<AgainstRow> against;
  uint64_t tensors = 0, bytes = 0;
  double seconds = 0;
};

VerifyReport verify(const Path& path, const VerifyOptions& options);

}  // namespace nibble
