// Which safetensors files of a folder make up the checkpoint: those that the index names, or, without an index, what
// the names say.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nibble/base/finding.h"
#include "nibble/checkpoint/folder.h"
#include "nibble/checkpoint/shard_index.h"

namespace nibble {

struct ShardSelection {
  std::vector<std::string> files;   // to read, sorted
  std::optional<ShardIndex> index;  // that the tensors must match; empty if there is none or none of its files exists
  std::string index_path;           // for messages
};

// Reports missing-file, extra-file, bad-index and, for an index whose files are gone while others are there,
// index-mismatch (C51).
ShardSelection select_shards(const Path& folder, const FolderFiles& files, Findings* findings);

}  // namespace nibble
