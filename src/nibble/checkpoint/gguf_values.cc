#include <fmt/format.h>

#include <algorithm>

#include "nibble/base/error.h"
#include "nibble/checkpoint/gguf.h"

namespace nibble {
namespace {

[[noreturn]] void refuse_type(const GgufFile& file, std::string_view key, const char* wanted) {
  throw Error(fmt::format("`{}` should be {}", key, wanted))
      .file(file.name)
      .value("key", std::string(key))
      .way_out("convert the model again with a current converter");
}

}  // namespace

const GgufValue* GgufFile::find(std::string_view key) const {
  const auto at = std::ranges::find(metadata, key, &std::pair<std::string, GgufValue>::first);
  return at == metadata.end() ? nullptr : &at->second;
}

std::optional<uint64_t> GgufFile::get_uint(std::string_view key) const {
  const GgufValue* found = find(key);
  if (found == nullptr) return std::nullopt;
  if (const auto* number = std::get_if<uint64_t>(&found->value)) return *number;
  const auto* number = std::get_if<int64_t>(&found->value);
  if (number == nullptr || *number < 0) refuse_type(*this, key, "a whole number of 0 or more");
  return static_cast<uint64_t>(*number);
}

std::optional<double> GgufFile::get_double(std::string_view key) const {
  const GgufValue* found = find(key);
  if (found == nullptr) return std::nullopt;
  const auto* number = std::get_if<double>(&found->value);
  if (number == nullptr) refuse_type(*this, key, "a floating-point number");
  return *number;
}

std::optional<bool> GgufFile::get_bool(std::string_view key) const {
  const GgufValue* found = find(key);
  if (found == nullptr) return std::nullopt;
  const auto* truth = std::get_if<bool>(&found->value);
  if (truth == nullptr) refuse_type(*this, key, "true or false");
  return *truth;
}

std::optional<std::string> GgufFile::get_string(std::string_view key) const {
  const GgufValue* found = find(key);
  if (found == nullptr) return std::nullopt;
  const auto* text = std::get_if<std::string>(&found->value);
  if (text == nullptr) refuse_type(*this, key, "a string");
  return *text;
}

}  // namespace nibble
