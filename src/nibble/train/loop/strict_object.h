// A JSON object that is read key by key, so that what nobody asked for can be refused.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nibble/base/error.h"
#include "nibble/base/json.h"

namespace nibble {

class StrictObject {
 public:
  // `where`: "" or the name of the object inside the file, for messages. Error if `json` is no object.
  StrictObject(const Json& json, std::string file_name, std::string where);

  // Each remembers the key. nullopt if it is not there. Error for another type, and outside [low, high].
  std::optional<uint64_t> count(std::string_view key, uint64_t low, uint64_t high);
  std::optional<double> number(std::string_view key, double low, double high);
  std::optional<bool> flag(std::string_view key);
  std::optional<std::string> text(std::string_view key);
  // One of `words`; Error with all of them, and the nearest.
  std::optional<std::string> word(std::string_view key, const std::vector<std::string>& words);
  std::vector<std::string> texts(std::string_view key);
  // An object inside; null if it is not there.
  const Json* object(std::string_view key);
  // A key that is known and not read here.
  void note(std::string_view key) { asked_.emplace_back(key); }

  // Error for a key that was not asked for, with the nearest of those that were.
  void refuse_others() const;
  Error error(const std::string& message, std::string_view key) const;

 private:
  const Json* find(std::string_view key);
  std::string path(std::string_view key) const;
  // The value, which has to be there and within both ends.
  template <typename T>
  T within(std::string_view key, std::optional<T> value, T low, T high) const;

  const Json* json_;
  std::string file_name_, where_;
  std::vector<std::string> asked_;
};

}  // namespace nibble
