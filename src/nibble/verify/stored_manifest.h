// Reading of `nibble.json` (quantize/manifest.h writes it): what is recorded about the files and tensors of a folder.
// The file is as untrusted as any other: whatever is malformed in it is a finding (`manifest-hash`), nothing throws.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nibble/base/file.h"
#include "nibble/base/finding.h"
#include "nibble/quantize/scale_changes.h"

namespace nibble {

struct RecordedFile {
  std::string file;  // relative to the folder, inside it
  uint64_t bytes = 0;
  std::string sha256;  // 64 hex digits, lower case
};

struct RecordedTensor {
  std::string name;                              // logical, as Weight::name
  std::string format;                            // Format::name, or "" where nothing is recorded
  std::string rule;                              // that rounded it; "": copied, moved or recast
  std::vector<SecondScaleChange> second_scales;  // --unify-scales
};

struct StoredManifest {
  std::string path;            // for messages
  std::string contract;        // version of the bytes that a recipe gives
  std::string bit_exact_with;  // the recipe's library (numerics' library_name), or ""
  std::vector<RecordedFile> outputs;
  std::vector<RecordedTensor> tensors;

  const RecordedFile* find(std::string_view file) const;
};

// nullopt: no manifest, or one that cannot be used (then there is a finding of severity error).
std::optional<StoredManifest> read_manifest(const Path& folder, Findings* findings);
// From memory (the fuzz target's entrance).
std::optional<StoredManifest> parse_manifest(std::string_view text, const std::string& source_name, Findings* findings);

}  // namespace nibble
