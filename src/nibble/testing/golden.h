// Golden data of tests/golden: golden_micro.json (vectors of the format specification, made by a pure Python model) and
// safetensors files made with the field's own libraries. Anything missing or malformed is a failed check: a test must
// not pass because its data is not there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "nibble/base/file.h"
#include "nibble/base/json.h"

namespace nibble::testing {

// golden_micro.json, parsed once.
const Json& golden_micro();

// A number of golden_micro.json: a JSON number or "-0", "nan", "inf", "-inf".
double golden_number(const Json& value);
std::vector<float> golden_floats(const Json& values);
// "0x3f80" -> 0x3f80.
uint32_t golden_hex(const Json& value);
// "0fab58" -> bytes in that order.
std::vector<std::byte> golden_bytes(const Json& hex_string);
std::string hex_of(const std::byte* bytes, size_t count);

// One tensor of a safetensors file.
struct GoldenTensor {
  std::string dtype;
  std::vector<uint64_t> shape;
  std::vector<std::byte> bytes;
  uint64_t elements() const;
};

// A whole safetensors file in memory. For trusted test data only: it checks offsets, nothing else.
class GoldenFile {
 public:
  // `name` is relative to tests/golden.
  explicit GoldenFile(const std::string& name);
  bool has(std::string_view name) const;
  const GoldenTensor& at(std::string_view name) const;
  std::vector<std::string> names() const;
  // "" if the metadata lacks the key.
  std::string metadata(const std::string& key) const;

 private:
  std::vector<std::pair<std::string, GoldenTensor>> tensors_;
  std::vector<std::pair<std::string, std::string>> metadata_;
};

}  // namespace nibble::testing
