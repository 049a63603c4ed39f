// Writes one shard: its units run on all threads, each part's bytes go to their planned place, and the SHA-256 of the
// file is computed behind the writers as soon as a prefix is complete. The file appears under its name only when it is
// whole.
#pragma once

#include <string>
#include <vector>

#include "nibble/quantize/unit_encoder.h"

namespace nibble {

struct ShardResult {
  std::string sha256;
  uint64_t bytes = 0;
  std::vector<UnitResult> units;  // as in OutShard::units
};

ShardResult write_shard(const EncodeContext& context, const OutShard& shard, const Path& folder, int threads);

}  // namespace nibble
