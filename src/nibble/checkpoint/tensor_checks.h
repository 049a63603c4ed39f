// What must hold across the files of a checkpoint: each name once, and the index and the shards saying the same.
#pragma once

#include <string>
#include <vector>

#include "nibble/base/finding.h"
#include "nibble/checkpoint/checkpoint.h"
#include "nibble/checkpoint/name_index.h"
#include "nibble/checkpoint/shard_index.h"

namespace nibble {

struct CheckedFile {
  std::string name;
  bool header_read = false;
};

// Fills `names` with `tensors` in order; reports duplicate-tensor with both files and both spans.
void index_names(const Path& folder, const std::vector<CheckedFile>& files, const std::vector<StoredTensor>& tensors,
                 NameIndex* names, Findings* findings);

// Reports index-mismatch (tensors of files whose header could not be read are passed over) and a wrong total_size as a
// note.
void check_index(const ShardIndex& index, const std::string& index_path, const std::vector<CheckedFile>& files,
                 const std::vector<StoredTensor>& tensors, const NameIndex& names, Findings* findings);

}  // namespace nibble
