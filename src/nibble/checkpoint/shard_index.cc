#include "nibble/checkpoint/shard_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "nibble/checkpoint/container_error.h"
#include "nibble/checkpoint/json_scanner.h"
#include "nibble/checkpoint/name_index.h"

namespace nibble {
namespace {

// Two million tensors with long names; more is not an index.
constexpr uint64_t kMaxIndexBytes = uint64_t{512} << 20;
constexpr const char* kBrokenIndex = "fetch the index again, or rebuild it from the shards with `--reindex`";

bool is_bare(std::string_view file) {
  return !file.empty() && file != "." && file != ".." && file.find_first_of(std::string_view("/\\\0", 3)) == file.npos;
}

class IndexParser {
 public:
  IndexParser(std::string_view text, const std::string& source_name)
      : scan_(text, source_name, NonFiniteNumbers::kAccept), source_(source_name) {}

  ShardIndex parse() {
    if (scan_.peek() != JsonKind::kObject) throw refuse("the index is not a JSON object");
    bool seen_metadata = false;
    bool seen_map = false;
    scan_.object([&](std::string_view key) {
      if (key == "metadata") {
        if (std::exchange(seen_metadata, true)) throw refuse("`metadata` stands twice in the index");
        metadata();
      } else if (key == "weight_map") {
        if (std::exchange(seen_map, true)) throw refuse("`weight_map` stands twice in the index");
        weight_map();
      } else {
        scan_.skip();
      }
    });
    scan_.end();
    if (index_.weights.empty()) throw refuse(seen_map ? "the index names no tensor" : "the index has no `weight_map`");
    refuse_duplicates();
    return std::move(index_);
  }

 private:
  Error refuse(const std::string& message) const {
    Error error(message);
    error.file(source_).way_out(kBrokenIndex);
    return error;
  }

  // total_size is advisory and known to be wrong in the wild, so whatever else stands there is passed over.
  void metadata() {
    if (scan_.peek() != JsonKind::kObject) {
      scan_.skip();
      return;
    }
    scan_.object([this](std::string_view key) {
      const bool wanted = key == "total_size";
      const std::string_view value = scan_.skip();
      if (wanted) index_.total_size = whole_number(value);
    });
  }

  void weight_map() {
    if (scan_.peek() != JsonKind::kObject) throw refuse("`weight_map` is not an object");
    scan_.object([this](std::string_view key) {
      std::string name(key);
      if (scan_.peek() != JsonKind::kString) {
        const std::string_view found = scan_.skip();
        throw refuse("`weight_map` should map to a file name")
            .tensor(name)
            .value("found", std::string(found.substr(0, 80)));
      }
      const std::string_view file = scan_.string();
      if (!is_bare(file)) {
        throw refuse("the index names a file outside the folder: shards are bare file names")
            .tensor(name)
            .value("shard", std::string(file));
      }
      index_.weights.emplace_back(std::move(name), file_number(file));
    });
  }

  // Neighbours mostly share a file.
  uint32_t file_number(std::string_view file) {
    if (!index_.weights.empty() && index_.files[index_.weights.back().second] == file)
      return index_.weights.back().second;
    const auto [at, added] = numbers_.try_emplace(std::string(file), static_cast<uint32_t>(index_.files.size()));
    if (added) index_.files.push_back(at->first);
    return at->second;
  }

  void refuse_duplicates() const {
    NameIndex names;
    names.reserve(index_.weights.size());
    for (const auto& [name, file] : index_.weights) {
      const int64_t earlier = names.insert(name);
      if (earlier < 0) continue;
      throw refuse("the index names a tensor twice")
          .tensor(name)
          .value("first_shard", index_.files[index_.weights[static_cast<size_t>(earlier)].second])
          .value("second_shard", index_.files[file]);
    }
  }

  JsonScanner scan_;
  const std::string& source_;
  ShardIndex index_;
  std::unordered_map<std::string, uint32_t> numbers_;
};

}  // namespace

ShardIndex parse_shard_index(std::string_view text, const std::string& source_name) {
  return IndexParser(text, source_name).parse();
}

ShardIndex read_shard_index(const Path& path) {
  std::string text;
  try {
    text = read_text(path, kMaxIndexBytes);
  } catch (const Error& error) {
    throw UnreadableFileError(error);
  }
  return parse_shard_index(text, path.string());
}

std::string shard_index_text(const ShardIndex& index) {
  std::vector<uint32_t> order(index.weights.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return index.weights[a].first < index.weights[b].first; });
  uint64_t bytes = 200;
  for (const auto& [name, file] : index.weights) bytes += name.size() + index.files[file].size() + 16;
  std::string text;
  text.reserve(bytes);  // what escapes need on top, the string finds itself
  text += "{\n  \"metadata\": {";
  if (index.total_size) text += fmt::format("\n    \"total_size\": {}\n  ", *index.total_size);
  text += "},\n  \"weight_map\": {";
  const char* separator = "\n    ";
  for (const uint32_t i : order) {
    text += separator;
    append_json_string(&text, index.weights[i].first);
    text += ": ";
    append_json_string(&text, index.files[index.weights[i].second]);
    separator = ",\n    ";
  }
  text += index.weights.empty() ? "}\n}\n" : "\n  }\n}\n";
  return text;
}

}  // namespace nibble
