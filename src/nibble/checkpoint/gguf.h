// The GGUF container, version 3 (and 2), little-endian (FORMATS.md §9.1): key/value pairs and tensor infos. Every
// length is checked against the bytes that remain before it is believed; arrays nest at most 4 deep.
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

struct GgufFile {
  uint32_t version = 0;
  uint64_t alignment = 32;
  std::vector<std::pair<std::string, GgufValue>> metadata;  // file order
  std::vector<StoredTensor> tensors;                        // shapes slowest first; file left 0

  const GgufValue* find(std::string_view key) const;
  // Typed access; Error naming the key if it is there with another type.
  std::optional<uint64_t> get_uint(std::string_view key) const;
  std::optional<double> get_double(std::string_view key) const;
  std::optional<bool> get_bool(std::string_view key) const;
  std::optional<std::string> get_string(std::string_view key) const;
};

GgufFile read_gguf(const InputFile& file);
// From memory (the fuzz target's entrance); `file_bytes` is the size of the whole file, `head` a prefix that holds the
// infos.
GgufFile parse_gguf(std::span<const std::byte> head, uint64_t file_bytes, const std::string& file_name);

// One row of ggml's type table: all types are known by name and size, so that a file can be listed and checked even
// where a type cannot be decoded.
struct GgufType {
  uint32_t id;
  const char* name;  // "Q4_K"
  uint32_t block_elements;
  uint32_t block_bytes;
};
const GgufType* gguf_type(uint32_t id);  // null if unknown

}  // namespace nibble
