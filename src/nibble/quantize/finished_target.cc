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

// The recorded hashes of the files beside the shards; of versions that did not record them there are none.
std::map<std::string, std::string> recorded_hashes(const Json& manifest) {
  std::map<std::string, std::string> hashes;
  for (const Json& output : manifest.at("outputs")) hashes[output.at("file")] = output.at("sha256");
  return hashes;
}

Error not_the_sources(const Path& path) {
  return std::move(another("a file beside the target's weights is not what the source gives").file(path.string()));
}

std::vector<SideFile> check_beside(const Json& manifest, const Checkpoint& source, const std::vector<SideFile>& beside,
                                   const Path& target) {
  const auto recorded = recorded_hashes(manifest);
  std::vector<SideFile> missing;
  for (const SideFile& file : beside) {
    std::error_code ignored;
    const Path path = target / file.name;
    const bool is_there = std::filesystem::exists(path, ignored);
    if (is_document(file.name) && is_there) continue;
    const std::string sha256 = side_file_sha256(source, file);
    // Written now, it would not be what the manifest says: the source has changed, or another version finished this.
    const auto record = recorded.find(file.name);
    if (record != recorded.end() && record->second != sha256 && !is_document(file.name))
      throw not_the_sources(path).value("recorded_sha256", record->second).value("sha256", sha256);
    if (!is_there) {
      missing.push_back(file);
    } else if (sha256_of_file(path) != sha256) {
      throw not_the_sources(path).way_out("remove it: then the same command writes it again");
    }
  }
  return missing;
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

std::vector<SideFile> check_finished(const Json& manifest, const Json& recipe, const Checkpoint& source,
                                     const OutputPlan& plan, const std::vector<SideFile>& beside, const Path& target) {
  const Path path = target / kManifestName;
  try {
    check_recipe(manifest, recipe, path.string());
    check_outputs(plan, target);
    check_input_files(manifest, source);
    if (younger_than(source, path)) check_input_content(manifest, source);
    return check_beside(manifest, source, beside, target);
  } catch (const Json::exception& error) {
    throw damaged_manifest(path, error.what());
  }
}

}  // namespace nibble
