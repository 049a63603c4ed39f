// Everything in the output folder beside the weights: config.json with a complete quantization_config, a layout's extra
// files, and the source's tokenizer, templates and other companions. A GGUF source has none of these as files: they are
// made from its keys (gguf_folder.h).
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nibble/quantize/output_plan.h"

namespace nibble {

// Texts to be written (name, content), without the companions that are copied as files.
std::vector<std::pair<std::string, std::string>> side_texts(const Checkpoint& source, const Model& model,
                                                            const OutputPlan& plan, const QuantizeRequest& request);

// The index over the shards; nullopt where there is one shard only, which needs none.
std::optional<std::string> output_index_text(const OutputPlan& plan, const Checkpoint& source);
// Bytes that it takes at most, without making it.
uint64_t index_bytes(const OutputPlan& plan, const Checkpoint& source);
inline constexpr const char* kOutputIndexName = "model.safetensors.index.json";

// Companions of the source that are copied, relative to its folder: the files that no text replaces, and those of
// sub-folders that hold no weights.
std::vector<Path> copied_companions(const Checkpoint& source,
                                    const std::vector<std::pair<std::string, std::string>>& texts);

// A file beside the shards.
struct SideFile {
  std::string name;                   // relative to the folder
  const std::string* text = nullptr;  // null: it is a copy of the source's
};
// Texts and companions, in the order in which they are written and recorded; the index is not among them.
std::vector<SideFile> side_files(const Checkpoint& source,
                                 const std::vector<std::pair<std::string, std::string>>& texts);
void write_side_file(const Checkpoint& source, const SideFile& file, const Path& target);
std::string side_file_sha256(const Checkpoint& source, const SideFile& file);

// What people write and edit for people (README.md, licences, pictures): no program reads it.
bool is_document(std::string_view name);

// "sub-folder original is not carried over: …", for those that are not.
std::vector<std::string> left_folder_notes(const Checkpoint& source);

// Bytes that texts and companions need on disk.
uint64_t side_bytes(const Checkpoint& source, const std::vector<std::pair<std::string, std::string>>& texts);

}  // namespace nibble
