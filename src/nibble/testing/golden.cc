#include "nibble/testing/golden.h"

#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "nibble/base/check.h"
#include "nibble/testing/temp_dir.h"

namespace nibble::testing {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  NIBBLE_CHECK(c >= 'a' && c <= 'f');
  return c - 'a' + 10;
}

}  // namespace

const Json& golden_micro() {
  static const Json golden = read_json(golden_dir() / "golden_micro.json");
  return golden;
}

double golden_number(const Json& value) {
  if (value.is_number()) return value.get<double>();
  const std::string text = value.get<std::string>();
  if (text == "-0") return -0.0;
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  NIBBLE_CHECK(text == "inf" || text == "-inf");
  return text == "inf" ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
}

std::vector<float> golden_floats(const Json& values) {
  std::vector<float> floats;
  for (const Json& value : values) floats.push_back(static_cast<float>(golden_number(value)));
  return floats;
}

uint32_t golden_hex(const Json& value) {
  const std::string text = value.get<std::string>();
  NIBBLE_CHECK(text.starts_with("0x"));
  uint32_t number = 0;
  for (const char c : text.substr(2)) number = number * 16 + static_cast<uint32_t>(hex_digit(c));
  return number;
}

std::vector<std::byte> golden_bytes(const Json& hex_string) {
  const std::string text = hex_string.get<std::string>();
  NIBBLE_CHECK(text.size() % 2 == 0);
  std::vector<std::byte> bytes;
  for (size_t i = 0; i < text.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(hex_digit(text[i]) * 16 + hex_digit(text[i + 1])));
  }
  return bytes;
}

std::string hex_of(const std::byte* bytes, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    const auto value = static_cast<unsigned>(bytes[i]);
    text += "0123456789abcdef"[value >> 4];
    text += "0123456789abcdef"[value & 15];
  }
  return text;
}

uint64_t GoldenTensor::elements() const {
  uint64_t count = 1;
  for (const uint64_t dim : shape) count *= dim;
  return count;
}

GoldenFile::GoldenFile(const std::string& name) {
  const std::string file = read_text(golden_dir() / name, uint64_t{256} << 20);
  NIBBLE_CHECK(file.size() >= 8);
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, file.data(), 8);
  NIBBLE_CHECK(header_bytes <= file.size() - 8);
  const Json header = parse_json(std::string_view(file).substr(8, header_bytes), name);
  const std::string_view data = std::string_view(file).substr(8 + header_bytes);
  for (const auto& [key, value] : header.items()) {
    if (key == "__metadata__") {
      for (const auto& [meta_key, text] : value.items()) metadata_.emplace_back(meta_key, text.get<std::string>());
      continue;
    }
    GoldenTensor tensor;
    tensor.dtype = value.at("dtype").get<std::string>();
    tensor.shape = value.at("shape").get<std::vector<uint64_t>>();
    const auto begin = value.at("data_offsets").at(0).get<uint64_t>();
    const auto end = value.at("data_offsets").at(1).get<uint64_t>();
    NIBBLE_CHECK(begin <= end && end <= data.size());
    tensor.bytes.resize(end - begin);
    if (end > begin) std::memcpy(tensor.bytes.data(), data.data() + begin, end - begin);
    tensors_.emplace_back(key, std::move(tensor));
  }
}

bool GoldenFile::has(std::string_view name) const {
  for (const auto& [key, tensor] : tensors_) {
    if (key == name) return true;
  }
  return false;
}

const GoldenTensor& GoldenFile::at(std::string_view name) const {
  for (const auto& [key, tensor] : tensors_) {
    if (key == name) return tensor;
  }
  internal::check_failed("the golden file holds the tensor", std::string(name).c_str(), 0);
}

std::vector<std::string> GoldenFile::names() const {
  std::vector<std::string> names;
  names.reserve(tensors_.size());
  for (const auto& [key, tensor] : tensors_) names.push_back(key);
  return names;
}

std::string GoldenFile::metadata(const std::string& key) const {
  for (const auto& [meta_key, text] : metadata_) {
    if (meta_key == key) return text;
  }
  return "";
}

}  // namespace nibble::testing
