// The journal of an unfinished run: TARGET/.nibble/ with the recipe, the state of the source files, and one record for
// each finished shard. A run that finds one continues; a run whose recipe or inputs differ is refused, naming what
// differs with both values. Several workers may share it: a shard is written by whoever holds the lock on its partial
// file, and records appear whole or not at all. folder_lock.h says who else is there.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nibble/base/file.h"
#include "nibble/base/json.h"
#include "nibble/checkpoint/checkpoint.h"
#include "nibble/quantize/folder_lock.h"

namespace nibble {

// What the run is, in the journal's folder: without it the folder is a remnant.
inline constexpr const char* kJournalState = "run.json";

// What one finished shard leaves for the manifest, its rows apart.
struct ShardRecord {
  uint64_t bytes = 0;
  std::string sha256;
};

// Takes one row of a shard: JSON, as it will stand in the manifest.
using RowVisitor = std::function<void(std::string_view row)>;

class Journal {
 public:
  // Opens or creates the journal in `target`, under a FolderLock. Throws if it belongs to another recipe or to inputs
  // that have changed.
  static Journal open(const Path& target, const Json& recipe, const Checkpoint& source,
                      const std::vector<std::string>& shard_files);

  std::optional<ShardRecord> finished(size_t shard) const;
  // Rows come and go one by one: those of a large shard are hundreds of megabytes. `give_rows` hands each to its
  // argument.
  void record(size_t shard, const ShardRecord& record, const std::function<void(const RowVisitor&)>& give_rows) const;
  // Of a finished shard; Error, after the last one, if they are not those that were recorded.
  void for_rows(size_t shard, const RowVisitor& visit) const;
  bool all_finished() const;
  // Removes the journal's folder, under a FolderLock.
  void remove() const;

 private:
  Path record_path(size_t shard) const { return folder_ / (shard_files_[shard] + ".json"); }

  Path folder_;
  std::vector<std::string> shard_files_;
};

}  // namespace nibble
