// A checkpoint as it lies on disk: a folder of safetensors shards, one .safetensors file, or one .gguf file, with its
// configuration. Headers are read at once (in parallel), tensor bytes on demand.
//
// scan() reports everything that is wrong as findings and carries on; open() throws the first error. Rules reported
// here: missing-file, extra-file, short-file, trailing-bytes, unreadable-file, bad-index, index-mismatch,
// duplicate-tensor, bad-header, bad-config, no-weights. A damaged file stays in files(); its tensors are listed if its
// header could be read.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "nibble/base/file.h"
#include "nibble/base/finding.h"
#include "nibble/base/json.h"
#include "nibble/checkpoint/gguf.h"
#include "nibble/checkpoint/safetensors.h"

namespace nibble {

enum class Container { kSafetensors, kGguf };

struct StoredFile {
  std::string name;  // bare
  uint64_t bytes = 0;
  int64_t mtime_ns = 0;
  uint64_t header_bytes = 0;
  std::map<std::string, std::string> metadata;
};

struct OpenOptions {
  ReadMode mode = ReadMode::kPread;
  bool allow_trailing = false;
  int threads = 1;
};

class Checkpoint {
 public:
  // Throws only if `path` is not a checkpoint at all (absent, not readable, no weights file and no config).
  static Checkpoint scan(const Path& path, const OpenOptions& options, Findings* findings);
  static Checkpoint open(const Path& path, const OpenOptions& options = {});
  Checkpoint(Checkpoint&&) noexcept;
  Checkpoint& operator=(Checkpoint&&) noexcept;
  ~Checkpoint();

  const Path& path() const;    // as given
  const Path& folder() const;  // where the files lie
  Container container() const;
  const std::vector<StoredFile>& files() const;      // that hold weights, by name
  const std::vector<StoredTensor>& tensors() const;  // by file, then offset
  // Index into tensors(), or -1. The first, where a damaged checkpoint holds a name twice.
  int64_t find(std::string_view name) const;
  std::string file_of(const StoredTensor& tensor) const;  // full path, for messages
  // config.json (null if absent or damaged); the first there is of hf_quant_config.json, quantize_config.json and
  // quant_config.json (null, "" if there is none).
  const Json& config() const;
  const Json& side_config() const;
  std::string side_config_name() const;
  const GgufFile* gguf() const;  // null for safetensors
  // Full paths of the files beside the weights that a quantized copy needs too (tokenizer, templates, generation
  // config, code, README, licence), sorted. Not: weights of any kind, indexes, config.json, side configs, nibble.json,
  // hidden and partial files, sub-folders (sub_folders.h).
  const std::vector<Path>& companions() const;

  // Thread-safe. Errors name file, tensor and offset.
  void read(const StoredTensor& tensor, uint64_t offset, std::span<std::byte> out) const;
  std::vector<std::byte> read_all(const StoredTensor& tensor) const;

 private:
  Checkpoint();
  struct State;
  std::unique_ptr<State> state_;
};

// Rebuilds a stale or missing index from the shards that are there, after checking that none of them is missing or
// damaged and that every tensor occurs once (`--reindex`). Errors are findings, and then nothing is written.
void rebuild_index(const Path& folder, Findings* findings);

}  // namespace nibble
