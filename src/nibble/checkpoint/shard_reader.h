// Opens weight files and reads their headers, in parallel. What is wrong with one file is a finding of that file; the
// others are read all the same.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nibble/base/file.h"
#include "nibble/base/finding.h"
#include "nibble/checkpoint/checkpoint.h"

namespace nibble {

struct ShardContents {
  StoredFile file;
  std::optional<InputFile> input;     // empty if it cannot be opened
  std::vector<StoredTensor> tensors;  // `file` left 0
  bool header_read = false;
  Findings findings;
};

std::vector<ShardContents> read_shards(const Path& folder, const std::vector<std::string>& names,
                                       const OpenOptions& options);
// One GGUF file; *gguf is set if its header could be read.
ShardContents read_gguf_shard(const Path& folder, const std::string& name, const OpenOptions& options,
                              std::optional<GgufFile>* gguf);

}  // namespace nibble
