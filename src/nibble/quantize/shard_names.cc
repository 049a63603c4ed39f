#include "nibble/quantize/shard_names.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "nibble/base/strings.h"

namespace nibble {
namespace {

constexpr std::string_view kEnd = ".safetensors";
constexpr std::string_view kOf = "-of-";

// All of `text`, as a number that is not 0.
std::optional<size_t> number(std::string_view text) {
  size_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || value == 0) return std::nullopt;
  return value;
}

}  // namespace

std::string shard_name(size_t index, size_t count) {
  return count == 1 ? fmt::format("model{}", kEnd) : fmt::format("model-{:05}{}{:05}{}", index + 1, kOf, count, kEnd);
}

bool is_shard_name(std::string_view name) {
  constexpr std::string_view kBegin = "model-";
  if (name == shard_name(0, 1)) return true;
  const size_t of = name.find(kOf);
  if (!starts_with(name, kBegin) || !ends_with(name, kEnd) || of == std::string_view::npos) return false;
  const size_t after = of + kOf.size();
  if (of < kBegin.size() || name.size() < after + kEnd.size()) return false;
  const auto index = number(name.substr(kBegin.size(), of - kBegin.size()));
  const auto count = number(name.substr(after, name.size() - kEnd.size() - after));
  // Written out again, so that no other spelling of the numbers passes.
  return index && count && *index <= *count && *count > 1 && name == shard_name(*index - 1, *count);
}

}  // namespace nibble
