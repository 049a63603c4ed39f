// Writes one shard: its units run on all threads, each part's bytes go to their planned place, and the SHA-256 of the
// file is computed behind the writers as soon as a prefix is complete. The file appears under its name only when it is
// whole.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nibble/quantize/unit_encoder.h"

namespace nibble {

struct ShardResult {
  std::string sha256;
  uint64_t bytes = 0;
  std::vector<UnitResult> units;  // as in OutShard::units
};

class HashBehind;

// In steps, so that the second one of a shard can run while the next is encoded: a hash is one thread's work.
class ShardWriter {
 public:
  ShardWriter(const EncodeContext& context, const OutShard& shard, const Path& folder);
  ~ShardWriter();
  ShardWriter(const ShardWriter&) = delete;
  ShardWriter& operator=(const ShardWriter&) = delete;

  void encode(int threads);
  // Hashes what is left. Once, after encode().
  ShardResult finish();
  // Gives the file its name, after finish(). What is to be known of the file is written before: a full disk then leaves
  // no file that nobody knows.
  void commit() { file_.commit(); }

 private:
  void write_header();

  const EncodeContext& context_;
  const OutShard& shard_;
  OutputFile file_;
  std::unique_ptr<HashBehind> hash_;
  ShardResult result_;
};

}  // namespace nibble
