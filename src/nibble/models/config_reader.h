// Strict reading of a model configuration: every key by its names in the field (newer versions rename some), bounded,
// and with an Error that says which key of which file is missing, malformed or contradicts another.
//
//   const ConfigReader config(json, "…/config.json");
//   spec.experts = config.size({"num_experts", "num_local_experts"}, kMaxExperts);
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "nibble/base/error.h"
#include "nibble/base/json.h"

namespace nibble {

class ConfigReader {
 public:
  // Several names of one key: the newest or oldest first, it does not matter; two that are there must agree.
  using Keys = std::initializer_list<const char*>;

  // Keeps a reference to `object`. `path` goes before keys in messages ("text_config.").
  ConfigReader(const Json& object, std::string source_name, std::string path = "");

  // The object under `key`: Error if it is absent or no object.
  ConfigReader section(const char* key) const;
  // The same, or nothing if the key is absent or null.
  std::optional<ConfigReader> maybe_section(const char* key) const;

  // Whole numbers. `size` and `size_or` refuse 0 and what is above `limit`; `count` and `count_or` accept 0.
  uint64_t size(Keys keys, uint64_t limit) const;
  uint64_t size_or(Keys keys, uint64_t limit, uint64_t fallback) const;
  uint64_t count(Keys keys, uint64_t limit) const;
  uint64_t count_or(Keys keys, uint64_t limit, uint64_t fallback) const;
  // Finite numbers above 0.
  double positive(Keys keys) const;
  double positive_or(Keys keys, double fallback) const;
  double not_negative_or(Keys keys, double fallback) const;
  bool flag_or(Keys keys, bool fallback) const;
  std::string text_or(Keys keys, std::string fallback) const;
  // Absent or null: nothing. Error if the list does not hold `length` entries (any length for 0) of the right type.
  std::optional<std::vector<std::string>> texts(const char* key, uint64_t length) const;
  std::optional<std::vector<uint64_t>> counts(const char* key, uint64_t length, uint64_t limit) const;
  // Finite numbers above 0; one alone is a list of one.
  std::optional<std::vector<double>> positives(const char* key) const;
  bool has(const char* key) const;
  // Error at the first of these keys that is absent (null is there): those for which the field's own library has a
  // default that no formula gives, so that leaving them out means its author's model and hardly this one.
  void require_each(Keys keys) const;
  // The same, of several names of one key.
  void require_one(Keys keys) const;

  // An Error about this file; the caller adds values and a way out.
  Error refuse(const std::string& message) const;
  std::string key_path(const char* key) const { return path_ + key; }
  const std::string& source_name() const { return source_; }

 private:
  std::optional<uint64_t> find_uint(Keys keys) const;
  std::optional<double> find_double(Keys keys) const;
  uint64_t bounded(Keys keys, uint64_t value, uint64_t least, uint64_t limit) const;
  [[noreturn]] void missing(Keys keys) const;
  const Json* list(const char* key, uint64_t length) const;

  const Json* object_;
  std::string source_, path_;
};

}  // namespace nibble
