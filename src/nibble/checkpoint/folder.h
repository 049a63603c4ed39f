// The files of a checkpoint's folder sorted by what their names say: weights, index, configurations, and the rest,
// which a quantized copy needs too. Nothing is opened; sub-folders are not entered; links count as what they point to.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nibble/base/error.h"
#include "nibble/base/file.h"

namespace nibble {

struct FolderFiles {
  // Bare names, sorted; no hidden or partial files.
  std::vector<std::string> safetensors;
  std::vector<std::string> gguf;
  std::vector<std::string> other_weights;  // .bin, .pt and other forms that nibble does not read
  std::vector<std::string> indexes;        // *.safetensors.index.json, the usual one first
  bool has_config = false;
  std::string side_config;       // "" if there is none
  std::vector<Path> companions;  // full paths
};

inline constexpr std::string_view kIndexName = "model.safetensors.index.json";

// Does the name say that the file holds weights, in a form that nibble reads or in another?
bool is_weight_name(std::string_view name);

FolderFiles sort_folder(const Path& folder);

// The Error for a path where nothing is, with the nearest name beside it.
Error absent_path(const Path& path);

// What is wrong with the numbering of shards "STEM-00003-of-00015.safetensors": names of those that should be there and
// are not. Counting from 0 or from 1 is accepted, and one file more than "of" says (some writers count so).
std::vector<std::string> missing_shards(const std::vector<std::string>& names);
// True if `name` is numbered like one of `names`: the same stem and the same count.
bool in_series_of(const std::string& name, const std::vector<std::string>& names);
// Those of `names` that are numbered shards of a model, "model-*-of-*.safetensors".
std::vector<std::string> numbered_shards(const std::vector<std::string>& names);

}  // namespace nibble
