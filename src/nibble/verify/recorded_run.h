// The run that made a folder, as its `nibble.json` records it: the recipe and a row for every tensor. Unlike
// stored_manifest.h, which takes what it finds, this wants all of it: without, nothing can be made again.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "nibble/base/file.h"
#include "nibble/quantize/recipe.h"

namespace nibble {

struct RecordedRun {
  std::string path;  // of the manifest, for messages
  std::string tool;  // the version of nibble that wrote it
  Recipe recipe;
  std::string recipe_text;  // as JSON, to compare with
  // Name of an output -> its row as compact JSON. As text, since half a million parsed rows would take a gigabyte.
  std::unordered_map<std::string, std::string> rows;
};

// Error (the file, the field, what to do) if there is no manifest, another contract version made it (both versions are
// named), or anything in it is malformed.
RecordedRun read_recorded_run(const Path& folder);
// From memory.
RecordedRun parse_recorded_run(std::string_view text, const std::string& source_name);

}  // namespace nibble
