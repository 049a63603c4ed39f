// `model.safetensors.index.json` (FORMATS.md §3.1): which file holds which tensor. 500,000 entries parse in well under
// a second. File names must be bare; total_size is advisory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nibble/base/file.h"

namespace nibble {

struct ShardIndex {
  std::vector<std::string> files;                         // distinct, in order of first mention
  std::vector<std::pair<std::string, uint32_t>> weights;  // tensor name -> index into files, in file order
  std::optional<uint64_t> total_size;
};

// UnreadableFileError if the text cannot be had, Error if it is wrong.
ShardIndex read_shard_index(const Path& path);
ShardIndex parse_shard_index(std::string_view text, const std::string& source_name);
// Sorted by tensor name, two-space JSON as the field writes it.
std::string shard_index_text(const ShardIndex& index);

}  // namespace nibble
