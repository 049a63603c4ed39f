// Any bytes as an index. What is accepted names bare files only and survives being written and read again.
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "nibble/base/check.h"
#include "nibble/base/error.h"
#include "nibble/base/json.h"
#include "nibble/base/json_non_finite.h"
#include "nibble/checkpoint/shard_index.h"

namespace {

// What the library parses, words for non-finite numbers replaced. It also refuses numbers beyond a double, which the
// scanner passes over if nobody reads them.
bool is_json(std::string_view text) {
  try {
    const nibble::FiniteText finite = nibble::without_non_finite(text);
    (void)nibble::Json::parse(finite.non_finite.empty() ? text : finite.replaced);
    return true;
  } catch (const nibble::Json::out_of_range&) {
    return true;
  } catch (const nibble::Json::parse_error&) {
    return false;
  }
}

std::map<std::string, std::string> as_map(const nibble::ShardIndex& index) {
  std::map<std::string, std::string> map;
  for (const auto& [name, file] : index.weights) map[name] = index.files.at(file);
  return map;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  nibble::ShardIndex index;
  try {
    index = nibble::parse_shard_index(text, "input");
  } catch (const nibble::Error& error) {
    NIBBLE_CHECK(!error.file().empty() && !error.ways_out().empty());
    return 0;
  }
  NIBBLE_CHECK(is_json(text));
  for (const std::string& file : index.files) {
    NIBBLE_CHECK(!file.empty() && file != "." && file != "..");
    NIBBLE_CHECK(file.find('/') == std::string::npos && file.find('\\') == std::string::npos);
  }
  const auto map = as_map(index);
  NIBBLE_CHECK(map.size() == index.weights.size());
  const nibble::ShardIndex again = nibble::parse_shard_index(nibble::shard_index_text(index), "output");
  NIBBLE_CHECK(as_map(again) == map && again.total_size == index.total_size);
  return 0;
}
