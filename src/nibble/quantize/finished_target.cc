#include "nibble/quantize/finished_target.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "nibble/base/error.h"
#include "nibble/base/hash.h"
#include "nibble/quantize/manifest.h"

namespace nibble {
namespace {

Error another(const std::string& message) {
  return std::move(Error(message).way_out("name another folder").way_out("--restart to replace it"));
}

void check_recipe(const Json& manifest, const Json& recipe, const std::string& file) {
  const Json& contract = manifest.at("contract");
  if (contract != kContractVersion) {
    throw another("the target was finished by another version of the contract")
        .file(file)
        .value("old", contract.dump())
        .value("new", kContractVersion);
  }
  const Json& before = manifest.at("recipe");
  for (const auto& [key, value] : recipe.items()) {
    if (before.contains(key) && before.at(key) == value) continue;
    throw another("the target holds another finished result")
        .file(file)
        .value("field", "recipe." + key)
        .value("old", before.contains(key) ? before.at(key).dump() : "absent")
        .value("new", value.dump());
  }
}

void check_outputs(const OutputPlan& plan, const Path& target) {
  std::error_code ignored;
  for (const OutShard& shard : plan.shards) {
    const Path path = target / shard.file_name;
    if (std::filesystem::exists(path, ignored) && std::filesystem::file_size(path, ignored) == shard.file_bytes)
      continue;
    throw Error("the target's manifest and files disagree")
        .file(path.string())
        .value("expected_bytes", shard.file_bytes)
        .way_out("--restart to make it again");
  }
}

Error changed_source(const std::string& file) {
  return another("the source has changed since the target was finished").file(file);
}

void check_input_files(const Json& manifest, const Checkpoint& source) {
  std::map<std::string, uint64_t> before;
  for (const Json& input : manifest.at("inputs")) before[input.at("file")] = input.at("bytes");
  for (const StoredFile& file : source.files()) {
    const auto known = before.find(file.name);
    if (known != before.end() && known->second == file.bytes) continue;
    throw changed_source((source.folder() / file.name).string())
        .value("old_bytes", known == before.end() ? std::string("absent") : std::to_string(known->second))
        .value("new_bytes", file.bytes);
  }
}

std::string content_hash(const Checkpoint& source, const StoredTensor& tensor) {
  constexpr uint64_t kChunk = uint64_t{4} << 20;
  std::vector<std::byte> buffer(std::min(kChunk, tensor.bytes));
  Xxh3 hash;
  for (uint64_t offset = 0; offset < tensor.bytes; offset += kChunk) {
    const std::span piece(buffer.data(), std::min(kChunk, tensor.bytes - offset));
    source.read(tensor, offset, piece);
    hash.update(piece);
  }
  return hash.hex();
}

void check_input_content(const Json& manifest, const Checkpoint& source) {
  std::map<std::string, const StoredTensor*> tensors;
  for (const StoredTensor& tensor : source.tensors()) tensors[tensor.name] = &tensor;
  for (const Json& row : manifest.at("tensors")) {
    for (const auto& [name, hash] : row.at("inputs_xxh3_128").items()) {
      const auto found = tensors.find(name);
      const std::string now = found == tensors.end() ? "absent" : content_hash(source, *found->second);
      if (now == hash.get<std::string>()) continue;
      throw changed_source(found == tensors.end() ? source.path().string() : source.file_of(*found->second))
          .tensor(name)
          .value("old_xxh3_128", hash.get<std::string>())
          .value("new_xxh3_128", now);
    }
  }
}

bool younger_than(const Checkpoint& source, const Path& manifest) {
  const int64_t finished = InputFile::open(manifest).mtime_ns();
  return std::any_of(source.files().begin(), source.files().end(),
                     [&](const StoredFile& file) { return file.mtime_ns > finished; });
}

// config.json and what else is made from the source's configuration.
void check_side_texts(const std::vector<std::pair<std::string, std::string>>& texts, const Path& target) {
  for (const auto& [name, text] : texts) {
    std::error_code ignored;
    const Path path = target / name;
    if (std::filesystem::exists(path, ignored) && read_text(path, uint64_t{1} << 30) == text) continue;
    throw another("the target's configuration is not what the source's gives").file(path.string());
  }
}

}  // namespace

Error damaged_manifest(const Path& path, const std::string& reason) {
  return std::move(another("the target's manifest is damaged").file(path.string()).value("reason", reason));
}

Json finished_manifest(const Path& path) {
  try {
    return read_json(path, kManifestLimit);
  } catch (const Error& error) {
    throw damaged_manifest(path, error.message());
  }
}

void check_finished(const Json& manifest, const Json& recipe, const Checkpoint& source, const OutputPlan& plan,
                    const std::vector<std::pair<std::string, std::string>>& side_texts, const Path& target) {
  const Path path = target / kManifestName;
  try {
    check_recipe(manifest, recipe, path.string());
    check_outputs(plan, target);
    check_input_files(manifest, source);
    if (younger_than(source, path)) check_input_content(manifest, source);
  } catch (const Json::exception& error) {
    throw damaged_manifest(path, error.what());
  }
  check_side_texts(side_texts, target);
}

}  // namespace nibble
