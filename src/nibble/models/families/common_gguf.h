// What families that also exist as GGUF share: reading the architecture's keys, a decoder's configuration from and to
// them, and translation of tensor names (FORMATS.md §9).
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "nibble/base/error.h"
#include "nibble/base/json.h"
#include "nibble/models/family.h"

namespace nibble {

// Keys of one architecture ("llama.block_count" for "block_count"), strict as ConfigReader.
class GgufSpecReader {
 public:
  GgufSpecReader(const GgufFile& gguf, std::string source_name, std::string architecture);

  uint64_t size(const std::string& key, uint64_t limit) const;
  uint64_t size_or(const std::string& key, uint64_t limit, uint64_t fallback) const;
  // Numbers are stored as float32: the shortest decimal that means the same float32 (1e-05, not 9.99999974738e-06).
  double positive(const std::string& key) const;
  double positive_or(const std::string& key, double fallback) const;
  std::string text_or(const std::string& key, const std::string& fallback) const;
  const StoredTensor* tensor(std::string_view name) const;
  bool has_tensor(std::string_view name) const { return tensor(name) != nullptr; }
  // Rows of the embedding unless a key says it.
  uint64_t vocabulary() const;
  Error refuse(const std::string& message) const;

 private:
  std::string full(const std::string& key) const { return architecture_ + "." + key; }

  const GgufFile* gguf_;
  std::string source_, architecture_;
};

// Sizes, norms, rotation, ties (no output.weight: tied) and the dense width.
ModelSpec parse_gguf_decoder(const GgufSpecReader& reader, const Family& family);

// The keys that every Hugging Face decoder configuration has; token ids from tokenizer.ggml.*. Error if the file
// rotates with factors that GGUF gives only as a tensor (rope_freqs.weight): config.json would need the formula.
Json gguf_decoder_config(const GgufFile& gguf, const ModelSpec& spec, std::string_view architecture,
                         std::string_view model_type);

// Names of a decoder's tensors: ours of embedding, final norm, head and the projections of attention, which all
// decoders have, and of what a family has besides behind "blk.N." and, of ours, "model.layers.N.".
struct GgufNames {
  std::map<std::string_view, std::string_view> layer;

  std::string translate(std::string_view gguf_name) const;  // "" if unknown
};

}  // namespace nibble
