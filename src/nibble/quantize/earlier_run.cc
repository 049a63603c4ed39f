#include "nibble/quantize/earlier_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>

#include "nibble/base/error.h"
#include "nibble/base/json.h"
#include "nibble/base/log.h"
#include "nibble/base/strings.h"
#include "nibble/quantize/folder_lock.h"
#include "nibble/quantize/journal.h"
#include "nibble/quantize/manifest.h"
#include "nibble/quantize/shard_names.h"
#include "nibble/quantize/side_files.h"

namespace nibble {
namespace {

using Names = std::set<std::string>;

// That follow from the run, so that the next one need not replace them. Without the manifest, which goes last.
constexpr std::array<const char*, 3> kMadeFiles = {kOutputIndexName, "config.json", "hf_quant_config.json"};

// What `read` gives; nullopt, with a warning, if it throws.
template <typename Read>
std::optional<Names> understood(const char* what, const Read& read) {
  std::string reason;
  try {
    return read();
  } catch (const Error& error) {
    reason = error.message();  // its ways out are for whoever wants to read the file
  } catch (const Json::exception& error) {
    reason = error.what();
  }
  log::warning(fmt::format("the {} of an earlier run is damaged, and goes with all files that have a shard's name: {}",
                           what, reason));
  return std::nullopt;
}

// Those of the manifest; nullopt if it is there and cannot be understood.
std::optional<Names> named_by_manifest(const Path& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return Names();
  return understood("manifest", [&path] {
    Names names;
    const Json manifest = read_json(path, kManifestLimit);
    for (const Json& output : manifest.at("outputs")) names.insert(output.at("file").get<std::string>());
    return names;
  });
}

// The same of the journal.
std::optional<Names> named_by_journal(const Path& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return Names();
  return understood("journal", [&path] {
    Names names;
    const Json state = read_json(path);
    for (const Json& file : state.at("shards")) names.insert(file.get<std::string>());
    return names;
  });
}

// `name` without `suffix`, if it ends so and the rest is the name of a shard or of a file that every run makes.
bool is_ours_with(std::string_view name, std::string_view suffix) {
  if (!ends_with(name, suffix)) return false;
  name.remove_suffix(suffix.size());
  return is_shard_name(name) || name == kManifestName ||
         std::ranges::any_of(kMadeFiles, [name](const char* made) { return name == made; });
}

Names weights_of(const Path& target) {
  auto names = named_by_manifest(target / kManifestName);
  const auto more = named_by_journal(target / kJournalFolder / kJournalState);
  if (names && more) {
    names->insert(more->begin(), more->end());
    std::erase_if(*names, [](const std::string& name) { return !is_shard_name(name); });
    return *names;
  }
  Names all;
  for (const Path& path : list_files(target)) {
    if (const std::string name = path.filename().string(); is_shard_name(name)) all.insert(name);
  }
  return all;
}

}  // namespace

void remove_earlier_run(const Path& target) {
  std::error_code ignored;
  const Names weights = weights_of(target);
  for (const char* name : kMadeFiles) std::filesystem::remove(target / name, ignored);
  for (const std::string& name : weights) std::filesystem::remove(target / name, ignored);
  for (const Path& path : list_files(target)) {
    if (is_ours_with(path.filename().string(), kPartialSuffix)) std::filesystem::remove(path, ignored);
  }
  clear_journal_folder(target);
  std::filesystem::remove(target / kManifestName, ignored);
}

}  // namespace nibble
