// The GGUF container, version 3 (and 2), little-endian (FORMATS.md §9.1): key/value pairs and tensor infos. Every
// length is checked against the bytes that remain before it is believed; arrays nest at most 4 deep and hold at most
// kMaxGgufElements values in all; the header ends within kMaxGgufHeader bytes.
//
// Refused by name, each with a way out: big-endian files, version 1, split files, types that ggml has removed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "nibble/base/file.h"
#include "nibble/checkpoint/safetensors.h"

namespace nibble {

struct GgufValue {
  using Array = std::vector<GgufValue>;
  std::variant<uint64_t, int64_t, double, bool, std::string, Array> value;
};

inline constexpr uint64_t kMaxGgufElements = uint64_t{8} << 20;
inline constexpr uint64_t kMaxGgufHeader = uint64_t{256} << 20;

struct GgufFile {
  std::string name;  // for messages
  uint32_t version = 0;
  uint64_t alignment = 32;
  std::vector<std::pair<std::string, GgufValue>> metadata;  // file order
  std::vector<StoredTensor> tensors;                        // ascending offset; shapes slowest first; file left 0
  uint64_t data_begin = 0;     // absolute; = file size if there are no tensors and no padding
  uint64_t data_end = 0;       // of the last tensor, without padding
  uint64_t missing_bytes = 0;  // of the last tensors; only from scan_gguf

  const GgufValue* find(std::string_view key) const;
  // Typed access; Error naming the key if it is there with another type. Any integer type does where its value fits.
  std::optional<uint64_t> get_uint(std::string_view key) const;
  std::optional<double> get_double(std::string_view key) const;
  std::optional<bool> get_bool(std::string_view key) const;
  std::optional<std::string> get_string(std::string_view key) const;
};

// Throws Error at the first violated rule, ShortFileError if the data is cut.
GgufFile read_gguf(const InputFile& file);
// The same without judging the end of the data: missing_bytes tells.
GgufFile scan_gguf(const InputFile& file);
void check_gguf_size(const GgufFile& file);
// From memory (the fuzz target's entrance); `file_bytes` is the size of the whole file, `head` a prefix that holds the
// infos.
GgufFile parse_gguf(std::span<const std::byte> head, uint64_t file_bytes, const std::string& file_name);

// One row of ggml's type table: all types are known by name and size, so that a file can be listed and checked even
// where a type cannot be decoded.
struct GgufType {
  uint32_t id;
  const char* name;  // as ggml spells it
  uint32_t block_elements;
  uint32_t block_bytes;
};
const GgufType* gguf_type(uint32_t id);      // null if unknown
const char* removed_gguf_type(uint32_t id);  // its name, if ggml once had this type and dropped it; else null

}  // namespace nibble
