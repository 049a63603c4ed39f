// The safetensors container (FORMATS.md §3): header parsing with every rule of the reference reader, and headers for
// writing. Nothing is allocated that the file's claims drive: a header is at most 100,000,000 bytes and must be
// present. Beyond the reference: a name that stands twice is refused, F4 needs an even last dimension, and a shape has
// at most 64 dimensions.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nibble/base/file.h"
#include "nibble/checkpoint/container_error.h"
#include "nibble/checkpoint/dtype.h"

namespace nibble {

struct StoredTensor {
  std::string name;
  Dtype dtype = Dtype::kU8;
  uint32_t file = 0;       // index into Checkpoint::files()
  uint32_t gguf_type = 0;  // for kGgufBlock
  uint64_t offset = 0;     // absolute in the file
  uint64_t bytes = 0;
  std::vector<uint64_t> shape;  // slowest dimension first, GGUF's too; F4 counts elements
};

struct SafetensorsHeader {
  std::vector<StoredTensor> tensors;  // ascending offset; `file` left 0
  std::map<std::string, std::string> metadata;
  uint64_t header_bytes = 0;    // 8 + N
  uint64_t trailing_bytes = 0;  // after the last tensor; only with allow_trailing
  uint64_t missing_bytes = 0;   // of the last tensors; only from scan_safetensors_header
};

inline constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;
inline constexpr uint64_t kMaxShapeRank = 64;

// Throws Error (file, tensor, numbers) at the first violated rule. `allow_trailing` tolerates bytes after the last
// tensor.
SafetensorsHeader read_safetensors_header(const InputFile& file, bool allow_trailing = false);
// The same from memory (the fuzz target's entrance): `header` is the JSON, `buffer_bytes` what follows it in the file.
SafetensorsHeader parse_safetensors_header(std::string_view header, uint64_t buffer_bytes, const std::string& file_name,
                                           bool allow_trailing = false);

// The same without judging the file's size: trailing_bytes and missing_bytes tell. For listing a damaged file.
SafetensorsHeader scan_safetensors_header(const InputFile& file);
// The judgement: Error for trailing bytes, ShortFileError for missing ones.
void check_file_size(const SafetensorsHeader& header, bool allow_trailing, const std::string& file_name);

// "[4, 63]", for messages.
std::string shape_text(std::span<const uint64_t> shape);

struct TensorDecl {
  std::string name;
  Dtype dtype = Dtype::kBF16;
  std::vector<uint64_t> shape;
  uint64_t bytes() const;         // Error if the shape is not one that the container can hold
  uint64_t header_bytes() const;  // that its entry takes in a header at most, wherever the tensor will lie
};

// Where each tensor goes in a file to be written; the header is padded to 8, so every tensor is naturally aligned.
struct SafetensorsLayout {
  std::string header;               // the 8 length bytes and the JSON
  std::vector<TensorDecl> tensors;  // in file order
  std::vector<uint64_t> offsets;    // absolute, one per tensor
  uint64_t file_bytes = 0;
};
enum class TensorOrder : uint8_t {
  kReference,  // by descending dtype rank, then name: the reference writer's
  kAsGiven,    // what is made together lies together; only tensors that would break the alignment of others go last
};
// Error if a name stands twice or is not UTF-8, or the header would be too large.
SafetensorsLayout plan_safetensors(std::vector<TensorDecl> tensors, const std::map<std::string, std::string>& metadata,
                                   TensorOrder order = TensorOrder::kReference);

// Convenience for small files and tests: writes everything at once, atomically.
void write_safetensors(const Path& path, const std::vector<TensorDecl>& tensors,
                       const std::vector<std::vector<std::byte>>& data,
                       const std::map<std::string, std::string>& metadata);

}  // namespace nibble
