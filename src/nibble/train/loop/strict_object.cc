#include "nibble/train/loop/strict_object.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "nibble/base/strings.h"

namespace nibble {

StrictObject::StrictObject(const Json& json, std::string file_name, std::string where)
    : json_(&json), file_name_(std::move(file_name)), where_(std::move(where)) {
  if (json.is_object()) return;
  throw Error(where_.empty() ? "the configuration is no object" : "a key holds no object")
      .file(file_name_)
      .value("key", where_)
      .way_out(R"(write {"KEY": VALUE, …})");
}

std::string StrictObject::path(std::string_view key) const {
  return where_.empty() ? std::string(key) : fmt::format("{}.{}", where_, key);
}

Error StrictObject::error(const std::string& message, std::string_view key) const {
  return std::move(Error(message).file(file_name_).value("key", path(key)));
}

const Json* StrictObject::find(std::string_view key) {
  asked_.emplace_back(key);
  return json_member(*json_, std::string(key));
}

template <typename T>
T StrictObject::within(std::string_view key, std::optional<T> value, T low, T high) const {
  if (value && *value >= low && *value <= high) return *value;
  throw std::move(error("a number is out of range", key)
                      .value("found", value.value_or(0))
                      .value("least", low)
                      .value("most", high)
                      .way_out("choose one within"));
}

std::optional<uint64_t> StrictObject::count(std::string_view key, uint64_t low, uint64_t high) {
  if (find(key) == nullptr) return std::nullopt;
  return within(key, json_uint(*json_, std::string(key), file_name_), low, high);
}

std::optional<double> StrictObject::number(std::string_view key, double low, double high) {
  if (find(key) == nullptr) return std::nullopt;
  return within(key, json_double(*json_, std::string(key), file_name_), low, high);
}

std::optional<bool> StrictObject::flag(std::string_view key) {
  if (find(key) == nullptr) return std::nullopt;
  return json_bool(*json_, std::string(key), file_name_);
}

std::optional<std::string> StrictObject::text(std::string_view key) {
  if (find(key) == nullptr) return std::nullopt;
  return json_string(*json_, std::string(key), file_name_);
}

std::optional<std::string> StrictObject::word(std::string_view key, const std::vector<std::string>& words) {
  const auto value = text(key);
  if (!value || std::ranges::find(words, *value) != words.end()) return value;
  Error refusal = error("a word is not one of those that can stand here", key);
  refusal.value("found", *value);
  if (const std::string nearest = nearest_name(*value, words); !nearest.empty()) refusal.value("nearest", nearest);
  throw std::move(refusal.way_out(fmt::format("one of {}", fmt::join(words, ", "))));
}

std::vector<std::string> StrictObject::texts(std::string_view key) {
  const Json* list = find(key);
  if (list == nullptr) return {};
  std::vector<std::string> all;
  const bool is_list = list->is_array() && std::ranges::all_of(*list, [](const Json& one) { return one.is_string(); });
  if (!is_list) throw std::move(error("a key holds no list of words", key).way_out(R"(write ["ONE", "OTHER"])"));
  all.reserve(list->size());
  for (const Json& one : *list) all.push_back(one.get<std::string>());
  return all;
}

const Json* StrictObject::object(std::string_view key) {
  const Json* inside = find(key);
  if (inside == nullptr || inside->is_object()) return inside;
  throw std::move(error("a key holds no object", key).way_out(R"(write {"KEY": VALUE, …})"));
}

void StrictObject::refuse_others() const {
  for (const auto& [key, value] : json_->items()) {
    if (std::ranges::find(asked_, key) != asked_.end()) continue;
    Error refusal = error("a key is not known", key);
    if (const std::string nearest = nearest_name(key, asked_); !nearest.empty())
      refusal.value("nearest", path(nearest));
    throw std::move(refusal.way_out(fmt::format("keys here: {}", fmt::join(asked_, ", "))));
  }
}

}  // namespace nibble
