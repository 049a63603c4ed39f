#include "nibble/checkpoint/folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "nibble/base/strings.h"
#include "nibble/checkpoint/json_scanner.h"

namespace nibble {
namespace {

constexpr std::array<std::string_view, 9> kOtherWeights{".bin", ".pt",      ".pth",  ".ckpt",  ".h5",
                                                        ".ot",  ".msgpack", ".onnx", ".tflite"};
constexpr std::array<std::string_view, 3> kSideConfigs{"hf_quant_config.json", "quantize_config.json",
                                                       "quant_config.json"};

bool ends_with_any(std::string_view name, std::span<const std::string_view> endings) {
  return std::ranges::any_of(endings, [name](std::string_view ending) { return ends_with(name, ending); });
}

struct ShardNumber {
  std::string stem;  // "model"
  uint64_t number = 0, of = 0;
  size_t digits = 0;
};

// "STEM-NNNNN-of-MMMMM.safetensors".
std::optional<ShardNumber> shard_number(std::string_view name) {
  constexpr std::string_view kEnding = ".safetensors";
  constexpr std::string_view kOf = "-of-";
  if (!ends_with(name, kEnding)) return std::nullopt;
  name.remove_suffix(kEnding.size());
  const size_t of = name.rfind(kOf);
  const size_t dash = of == name.npos || of == 0 ? name.npos : name.rfind('-', of - 1);
  if (dash == name.npos) return std::nullopt;
  const std::string_view digits = name.substr(dash + 1, of - dash - 1);
  const auto number = whole_number(digits);
  const auto count = whole_number(name.substr(of + kOf.size()));
  if (!number || !count) return std::nullopt;
  return ShardNumber{std::string(name.substr(0, dash)), *number, *count, digits.size()};
}

}  // namespace

bool is_weight_name(std::string_view name) {
  return ends_with(name, ".safetensors") || ends_with(name, ".gguf") || ends_with_any(name, kOtherWeights);
}

FolderFiles sort_folder(const Path& folder) {
  FolderFiles files;
  std::vector<std::string> side;
  for (const Path& path : list_files(folder)) {
    const std::string name = path.filename().string();
    if (name[0] == '.' || ends_with(name, ".partial")) continue;
    if (ends_with(name, ".safetensors")) {
      files.safetensors.push_back(name);
    } else if (ends_with(name, ".gguf")) {
      files.gguf.push_back(name);
    } else if (ends_with_any(name, kOtherWeights)) {
      files.other_weights.push_back(name);
    } else if (ends_with(name, ".safetensors.index.json")) {
      files.indexes.insert(name == kIndexName ? files.indexes.begin() : files.indexes.end(), name);
    } else if (name == "config.json") {
      files.has_config = true;
    } else if (std::ranges::find(kSideConfigs, name) != kSideConfigs.end()) {
      side.push_back(name);
    } else if (!ends_with(name, ".index.json") && name != "nibble.json") {
      files.companions.push_back(path);
    }
  }
  for (const std::string_view name : kSideConfigs) {
    if (files.side_config.empty() && std::ranges::find(side, name) != side.end()) files.side_config = name;
  }
  return files;
}

Error absent_path(const Path& path) {
  Error error("there is no such file or folder");
  error.file(path.string());
  Path tidy = path.lexically_normal();
  if (!tidy.has_filename()) tidy = tidy.parent_path();  // a slash at the end
  std::error_code no_link;
  if (const Path target = std::filesystem::read_symlink(tidy, no_link); !no_link) {
    return std::move(Error("this is a link, and what it leads to is not there")
                         .file(path.string())
                         .value("is_a_link_to", target.string())
                         .way_out("fetch what it leads to, or mount where that lies")
                         .way_out("name the file or folder itself"));
  }
  const Path parent = tidy.parent_path().empty() ? Path(".") : tidy.parent_path();
  std::vector<std::string> siblings;
  std::error_code code;
  for (std::filesystem::directory_iterator it(parent, code), end; !code && it != end; it.increment(code)) {
    siblings.push_back(it->path().filename().string());
  }
  if (code) {
    return error.value("missing_folder", parent.string())
        .way_out("name a folder on this machine: nibble does not download models");
  }
  std::sort(siblings.begin(), siblings.end());
  const std::string nearest = nearest_name(tidy.filename().string(), siblings);
  if (siblings.empty()) return error.way_out("check the path: its folder is empty");
  if (nearest.empty()) return error.way_out("check the path: nothing in its folder has a similar name");
  return error.value("nearest", nearest)
      .way_out(fmt::format("did you mean `{}`?", (tidy.parent_path() / nearest).string()));
}

std::vector<std::string> numbered_shards(const std::vector<std::string>& names) {
  std::vector<std::string> numbered;
  for (const std::string& name : names) {
    const auto shard = shard_number(name);
    if (shard && starts_with(shard->stem, "model")) numbered.push_back(name);
  }
  return numbered;
}

bool in_series_of(const std::string& name, const std::vector<std::string>& names) {
  const auto shard = shard_number(name);
  return shard && std::ranges::any_of(names, [&](const std::string& other) {
           const auto same = shard_number(other);
           return same && same->stem == shard->stem && same->of == shard->of;
         });
}

std::vector<std::string> missing_shards(const std::vector<std::string>& names) {
  struct Series {
    std::set<uint64_t> numbers;
    size_t digits = 0;
  };
  std::map<std::pair<std::string, uint64_t>, Series> all;
  for (const std::string& name : names) {
    const auto shard = shard_number(name);
    if (!shard) continue;
    Series& series = all[{shard->stem, shard->of}];
    series.numbers.insert(shard->number);
    series.digits = shard->digits;
  }
  std::vector<std::string> missing;
  for (const auto& [id, series] : all) {
    const auto& [stem, of] = id;
    // From 0 it may run to of - 1 or to of: whichever the highest number shows.
    const uint64_t first = *series.numbers.begin() == 0 ? 0 : 1;
    const uint64_t last = first == 1 || *series.numbers.rbegin() >= of ? of : of - 1;
    constexpr size_t kMostNamed = 1000;  // "-of-99999999999" must not cost memory
    for (uint64_t n = first; n <= last && missing.size() < kMostNamed; ++n) {
      if (!series.numbers.contains(n))
        missing.push_back(fmt::format("{}-{:0{}}-of-{:0{}}.safetensors", stem, n, series.digits, of, series.digits));
    }
  }
  return missing;
}

}  // namespace nibble
