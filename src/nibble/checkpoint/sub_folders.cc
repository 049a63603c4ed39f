#include "nibble/checkpoint/sub_folders.h"

#include <fmt/format.h>

#include <algorithm>

#include "nibble/base/error.h"
#include "nibble/base/strings.h"
#include "nibble/checkpoint/folder.h"

namespace nibble {
namespace {

// What a companion has at most; a model's repository has a few figures, templates and scripts.
constexpr size_t kMostFiles = 1000;
constexpr uint64_t kMostBytes = 256'000'000;
constexpr int kMostDepth = 8;

struct Walk {
  std::vector<Path> files;
  uint64_t bytes = 0;
  std::string refusal;  // why it is no companion

  bool refuse(std::string why) {
    refusal = std::move(why);
    return false;
  }
};

bool is_model_file(const std::string& name) {
  return is_weight_name(name) || name == "config.json" || name == "nibble.json" || ends_with(name, ".index.json") ||
         ends_with(name, ".partial");
}

bool add(const std::filesystem::directory_entry& entry, const Path& folder, Walk* walk) {
  const std::string name = entry.path().filename().string();
  // A target that is being written, or was, is no part of its source.
  if (name == ".nibble" || is_model_file(name)) return walk->refuse("it holds a model");
  if (name[0] == '.') return true;
  std::error_code code;
  if (!entry.is_regular_file(code)) return true;
  walk->bytes += entry.file_size(code);
  walk->files.push_back(entry.path().lexically_relative(folder));
  if (walk->files.size() > kMostFiles) return walk->refuse(fmt::format("it holds more than {} files", kMostFiles));
  if (walk->bytes > kMostBytes) return walk->refuse(fmt::format("it holds more than {}", human_bytes(kMostBytes)));
  return true;
}

Walk walk_folder(const Path& sub, const Path& folder) {
  Walk walk;
  std::error_code code;
  std::filesystem::recursive_directory_iterator it(sub, code), end;
  for (; !code && it != end; it.increment(code)) {
    if (!add(*it, folder, &walk)) return walk;
    const bool hidden = it->path().filename().string()[0] == '.';
    if (hidden || it.depth() >= kMostDepth) it.disable_recursion_pending();
  }
  if (code) walk.refuse(fmt::format("it cannot be listed: {}", code.message()));
  return walk;
}

}  // namespace

SubFolders sort_sub_folders(const Path& folder) {
  SubFolders found;
  std::error_code code;
  for (std::filesystem::directory_iterator it(folder, code), end; !code && it != end; it.increment(code)) {
    std::error_code ignored;
    const std::string name = it->path().filename().string();
    if (name[0] == '.' || !it->is_directory(ignored)) continue;
    if (it->is_symlink(ignored)) {
      found.left.emplace_back(name, "it is a link to a folder");
      continue;
    }
    Walk walk = walk_folder(it->path(), folder);
    if (!walk.refusal.empty()) {
      found.left.emplace_back(name, std::move(walk.refusal));
    } else {
      std::ranges::move(walk.files, std::back_inserter(found.files));
    }
  }
  std::ranges::sort(found.files);
  std::ranges::sort(found.left);
  return found;
}

}  // namespace nibble
