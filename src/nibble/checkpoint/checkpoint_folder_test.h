// A small checkpoint on disk, and what the tests of scans ask of findings.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "nibble/checkpoint/checkpoint.h"
#include "nibble/testing/temp_dir.h"

namespace nibble::folder_test {

// A shard of one-byte tensors, each holding its name's last letter.
void write_shard(const Path& path, const std::vector<std::string>& names);
// Tensor to shard.
void write_index(const Path& folder, const std::vector<std::pair<std::string, std::string>>& map, uint64_t total_size);
std::string shard_name(int number, int of);

// Two shards with two tensors each, a right index and a config.json.
struct Folder : testing::TempDir {
  Folder();
  // Writes an index from tensors to shards 1 and 2.
  void index(const std::vector<std::pair<std::string, int>>& map, uint64_t total_size = 4) const;
  Findings scan(const OpenOptions& options = {}) const;
};

std::vector<std::string> rules(const Findings& findings);
std::vector<std::string> tensor_names(const Checkpoint& checkpoint);

}  // namespace nibble::folder_test
