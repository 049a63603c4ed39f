#include "nibble/quantize/scale_changes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "nibble/base/error.h"
#include "nibble/numerics/codec/e4m3.h"

namespace nibble {
namespace {

constexpr const char* kChanged = "changed_scales";
constexpr const char* kLargest = "largest_scale_change";
constexpr const char* kSecond = "second_scales";
constexpr const char* kBlocks = "scale_changes";

Error malformed(const char* list, const std::string& source) {
  return std::move(Error(std::string("an entry of `") + list + "` of the manifest is malformed")
                       .file(source)
                       .way_out("copy nibble.json again from where the checkpoint was made"));
}

template <typename T>
T required(const std::optional<T>& value, const char* list, const std::string& source) {
  if (!value) throw malformed(list, source);
  return *value;
}

float second_scale(const Json& entry, const char* key, const std::string& source) {
  const double value = required(json_double(entry, key, source), kSecond, source);
  if (!(std::abs(value) <= static_cast<double>(std::numeric_limits<float>::max()))) throw malformed(kSecond, source);
  return static_cast<float>(value);
}

uint8_t block_scale(const Json& entry, const char* key, const std::string& source) {
  const double value = required(json_double(entry, key, source), kBlocks, source);
  const uint8_t code = e4m3_encode(static_cast<float>(std::clamp(value, -1e9, 1e9)));
  if (static_cast<double>(e4m3_decode(code)) != value) throw malformed(kBlocks, source);
  return code;
}

const Json* list_of(const Json& row, const char* key, const std::string& source) {
  const auto found = row.find(key);
  if (found == row.end() || found->is_null()) return nullptr;
  if (!found->is_array()) throw malformed(key, source);
  for (const Json& entry : *found) {
    if (!entry.is_object()) throw malformed(key, source);
  }
  return &*found;
}

}  // namespace

uint64_t ScaleChanges::changed() const {
  uint64_t sum = 0;
  for (const auto& [pair, count] : blocks) sum += count;
  return sum;
}

void ScaleChanges::add(const ScaleChanges& other, uint64_t slice) {
  for (SecondScaleChange change : other.second_scales) {
    change.slice = slice;
    second_scales.push_back(change);
  }
  // Slices need not come in order.
  std::sort(second_scales.begin(), second_scales.end(),
            [](const SecondScaleChange& a, const SecondScaleChange& b) { return a.slice < b.slice; });
  for (const auto& [pair, count] : other.blocks) blocks[pair] += count;
  largest_relative_change = std::max(largest_relative_change, other.largest_relative_change);
}

void add_scale_changes(const ScaleChanges& changes, Json* row) {
  (*row)[kChanged] = changes.changed();
  (*row)[kLargest] = changes.largest_relative_change;
  Json second = Json::array();
  for (const SecondScaleChange& change : changes.second_scales)
    second.push_back(Json{{"slice", change.slice}, {"from", change.from}, {"to", change.to}});
  (*row)[kSecond] = std::move(second);
  Json blocks = Json::array();
  for (const auto& [pair, count] : changes.blocks)
    blocks.push_back(Json{{"from", e4m3_decode(pair.first)}, {"to", e4m3_decode(pair.second)}, {"blocks", count}});
  (*row)[kBlocks] = std::move(blocks);
}

ScaleChanges read_scale_changes(const Json& row, const std::string& source_name) {
  ScaleChanges changes;
  changes.largest_relative_change = json_double(row, kLargest, source_name).value_or(0);
  if (const Json* second = list_of(row, kSecond, source_name)) {
    for (const Json& entry : *second) {
      SecondScaleChange change;
      change.slice = required(json_uint(entry, "slice", source_name), kSecond, source_name);
      change.from = second_scale(entry, "from", source_name);
      change.to = second_scale(entry, "to", source_name);
      changes.second_scales.push_back(change);
    }
  }
  if (const Json* blocks = list_of(row, kBlocks, source_name)) {
    for (const Json& entry : *blocks) {
      const uint8_t from = block_scale(entry, "from", source_name);
      const uint8_t to = block_scale(entry, "to", source_name);
      changes.blocks[{from, to}] += required(json_uint(entry, "blocks", source_name), kBlocks, source_name);
    }
  }
  return changes;
}

uint64_t scale_changes_bytes(uint64_t slices) {
  constexpr uint64_t kSecondBytes = 80;  // three numbers of full length and keys
  constexpr uint64_t kBlockBytes = 60;
  constexpr uint64_t kScales = 126;  // positive finite values of E4M3
  return slices * kSecondBytes + std::min(slices, kScales) * kScales * kBlockBytes;
}

}  // namespace nibble
