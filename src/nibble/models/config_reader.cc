#include "nibble/models/config_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

namespace nibble {
namespace {

constexpr const char* kFetchAgain = "take config.json from the same release as the weights";

// The value under the first name that is there; Error if two names hold different values.
template <typename T, typename Get>
std::optional<T> first_of(ConfigReader::Keys keys, const ConfigReader& reader, const Get& get) {
  std::optional<T> found;
  const char* found_key = "";
  for (const char* key : keys) {
    const std::optional<T> value = get(key);
    if (value && found && *value != *found)
      throw reader.refuse("two spellings of one key disagree")
          .value(reader.key_path(found_key), *found)
          .value(reader.key_path(key), *value)
          .way_out("delete the one that is wrong");
    if (value && !found) {
      found = value;
      found_key = key;
    }
  }
  return found;
}

}  // namespace

ConfigReader::ConfigReader(const Json& object, std::string source_name, std::string path)
    : object_(&object), source_(std::move(source_name)), path_(std::move(path)) {
  if (!object.is_object()) throw refuse("the configuration is no JSON object").way_out(kFetchAgain);
}

Error ConfigReader::refuse(const std::string& message) const { return Error(message).file(source_); }

void ConfigReader::missing(Keys keys) const {
  std::vector<std::string> names;
  for (const char* key : keys) names.push_back(key_path(key));
  throw refuse(fmt::format("the configuration lacks `{}`", fmt::join(names, "` or `"))).way_out(kFetchAgain);
}

bool ConfigReader::has(const char* key) const {
  const auto it = object_->find(key);
  return it != object_->end() && !it->is_null();
}

void ConfigReader::require_each(Keys keys) const {
  for (const char* key : keys) {
    if (!object_->contains(key)) missing({key});
  }
}

void ConfigReader::require_one(Keys keys) const {
  if (std::none_of(keys.begin(), keys.end(), [this](const char* key) { return object_->contains(key); })) missing(keys);
}

ConfigReader ConfigReader::section(const char* key) const {
  auto found = maybe_section(key);
  if (!found) missing({key});
  return *found;
}

std::optional<ConfigReader> ConfigReader::maybe_section(const char* key) const {
  if (!has(key)) return std::nullopt;
  const Json& value = (*object_)[key];
  if (!value.is_object())
    throw refuse(fmt::format("`{}` should be an object", key_path(key)))
        .value(key, value.dump().substr(0, 80))
        .way_out(kFetchAgain);
  return ConfigReader(value, source_, key_path(key) + ".");
}

std::optional<uint64_t> ConfigReader::find_uint(Keys keys) const {
  return first_of<uint64_t>(keys, *this, [this](const char* key) { return json_uint(*object_, key, source_); });
}

std::optional<double> ConfigReader::find_double(Keys keys) const {
  return first_of<double>(keys, *this, [this](const char* key) { return json_double(*object_, key, source_); });
}

uint64_t ConfigReader::bounded(Keys keys, uint64_t value, uint64_t least, uint64_t limit) const {
  if (value >= least && value <= limit) return value;
  throw refuse(fmt::format("`{}` is out of range", key_path(*keys.begin())))
      .value("value", value)
      .value("least", least)
      .value("most", limit)
      .way_out(kFetchAgain);
}

uint64_t ConfigReader::size(Keys keys, uint64_t limit) const {
  const auto value = find_uint(keys);
  if (!value) missing(keys);
  return bounded(keys, *value, 1, limit);
}

uint64_t ConfigReader::size_or(Keys keys, uint64_t limit, uint64_t fallback) const {
  const auto value = find_uint(keys);
  return value ? bounded(keys, *value, 1, limit) : fallback;
}

uint64_t ConfigReader::count(Keys keys, uint64_t limit) const {
  const auto value = find_uint(keys);
  if (!value) missing(keys);
  return bounded(keys, *value, 0, limit);
}

uint64_t ConfigReader::count_or(Keys keys, uint64_t limit, uint64_t fallback) const {
  const auto value = find_uint(keys);
  return value ? bounded(keys, *value, 0, limit) : fallback;
}

double ConfigReader::positive(Keys keys) const {
  const auto value = find_double(keys);
  if (!value) missing(keys);
  if (!(*value > 0) || !std::isfinite(*value))
    throw refuse(fmt::format("`{}` should be above 0", key_path(*keys.begin())))
        .value("value", *value)
        .way_out(kFetchAgain);
  return *value;
}

double ConfigReader::positive_or(Keys keys, double fallback) const {
  return find_double(keys) ? positive(keys) : fallback;
}

double ConfigReader::not_negative_or(Keys keys, double fallback) const {
  const auto value = find_double(keys);
  return value && *value == 0 ? 0 : positive_or(keys, fallback);
}

bool ConfigReader::flag_or(Keys keys, bool fallback) const {
  return first_of<bool>(keys, *this, [this](const char* key) { return json_bool(*object_, key, source_); })
      .value_or(fallback);
}

std::string ConfigReader::text_or(Keys keys, std::string fallback) const {
  return first_of<std::string>(keys, *this, [this](const char* key) { return json_string(*object_, key, source_); })
      .value_or(std::move(fallback));
}

const Json* ConfigReader::list(const char* key, uint64_t length) const {
  if (!has(key)) return nullptr;
  const Json& value = (*object_)[key];
  if (!value.is_array()) throw refuse(fmt::format("`{}` should be a list", key_path(key))).way_out(kFetchAgain);
  if (length != 0 && value.size() != length)
    throw refuse(fmt::format("`{}` should have one entry a layer", key_path(key)))
        .value("entries", value.size())
        .value("layers", length)
        .way_out(kFetchAgain);
  return &value;
}

std::optional<std::vector<std::string>> ConfigReader::texts(const char* key, uint64_t length) const {
  const Json* values = list(key, length);
  if (values == nullptr) return std::nullopt;
  std::vector<std::string> result;
  for (const Json& value : *values) {
    if (!value.is_string()) throw refuse(fmt::format("`{}` should hold strings", key_path(key))).way_out(kFetchAgain);
    result.push_back(value.get<std::string>());
  }
  return result;
}

std::optional<std::vector<double>> ConfigReader::positives(const char* key) const {
  if (!has(key)) return std::nullopt;
  if (!(*object_)[key].is_array()) return std::vector<double>{positive({key})};
  std::vector<double> result;
  for (const Json& value : *list(key, 0)) {
    if (!value.is_number() || !(value.get<double>() > 0) || !std::isfinite(value.get<double>()))
      throw refuse(fmt::format("`{}` should hold numbers above 0", key_path(key)))
          .value("entry", value.dump().substr(0, 80))
          .way_out(kFetchAgain);
    result.push_back(value.get<double>());
  }
  return result;
}

std::optional<std::vector<uint64_t>> ConfigReader::counts(const char* key, uint64_t length, uint64_t limit) const {
  const Json* values = list(key, length);
  if (values == nullptr) return std::nullopt;
  std::vector<uint64_t> result;
  for (const Json& value : *values) {
    if (!value.is_number_unsigned() || value.get<uint64_t>() > limit)
      throw refuse(fmt::format("`{}` should hold whole numbers from 0 to {}", key_path(key), limit))
          .value("entry", value.dump().substr(0, 80))
          .way_out(kFetchAgain);
    result.push_back(value.get<uint64_t>());
  }
  return result;
}

}  // namespace nibble
