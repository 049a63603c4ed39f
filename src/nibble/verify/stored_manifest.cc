#include "nibble/verify/stored_manifest.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "nibble/base/error.h"
#include "nibble/base/json.h"

namespace nibble {
namespace {

constexpr const char* kFileName = "nibble.json";
constexpr uint64_t kLimit = uint64_t{1} << 30;  // 500,000 rows are about 250 MB

Error malformed(const std::string& source, std::string message) {
  return std::move(
      Error(std::move(message))
          .file(source)
          .way_out("copy the folder again, or remove the file: then nothing is recorded and nothing compared"));
}

std::string text_of(const Json& row, const char* key, const std::string& source) {
  const auto text = json_string(row, key, source);
  if (!text) throw malformed(source, std::string("an entry of the manifest lacks `") + key + "`");
  return *text;
}

const Json* list_of(const Json& root, const char* key, const std::string& source) {
  const auto found = root.find(key);
  if (found == root.end() || found->is_null()) return nullptr;
  if (!found->is_array()) throw malformed(source, std::string("`") + key + "` of the manifest is no list");
  return &*found;
}

bool is_sha256(std::string_view text) {
  return text.size() == 64 &&
         std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool is_bare(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

RecordedFile file_of(const Json& row, const std::string& source) {
  RecordedFile file;
  file.file = text_of(row, "file", source);
  file.sha256 = text_of(row, "sha256", source);
  const auto bytes = json_uint(row, "bytes", source);
  if (!bytes) throw malformed(source, "an entry of the manifest's outputs lacks `bytes`").value("output", file.file);
  file.bytes = *bytes;
  if (!is_bare(file.file))
    throw malformed(source, "the manifest names a file outside its folder").value("output", file.file);
  if (!is_sha256(file.sha256))
    throw malformed(source, "a hash in the manifest is not 64 hexadecimal digits").value("output", file.file);
  return file;
}

std::string contract_of(const Json& root) {
  const auto found = root.find("contract");
  if (found == root.end() || found->is_null()) return "";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

StoredManifest manifest_of(const Json& root, const std::string& source) {
  if (!root.is_object()) throw malformed(source, "the manifest is no JSON object");
  StoredManifest manifest;
  manifest.path = source;
  manifest.contract = contract_of(root);
  if (const Json* rows = list_of(root, "outputs", source)) {
    for (const Json& row : *rows) manifest.outputs.push_back(file_of(row, source));
  }
  if (const Json* rows = list_of(root, "tensors", source)) {
    for (const Json& row : *rows)
      manifest.tensors.push_back({text_of(row, "name", source), json_string(row, "format", source).value_or(""),
                                  read_scale_changes(row, source).second_scales});
  }
  return manifest;
}

template <typename Parse>
std::optional<StoredManifest> guarded(const std::string& source, Findings* findings, Parse parse) {
  try {
    return manifest_of(parse(), source);
  } catch (const Error& error) {
    findings->push_back(finding_of(error, "manifest-hash"));
  }
  return std::nullopt;
}

}  // namespace

const RecordedFile* StoredManifest::find(std::string_view file) const {
  const auto found =
      std::find_if(outputs.begin(), outputs.end(), [&](const RecordedFile& record) { return record.file == file; });
  return found == outputs.end() ? nullptr : &*found;
}

std::optional<StoredManifest> read_manifest(const Path& folder, Findings* findings) {
  const Path path = folder / kFileName;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::nullopt;
  return guarded(path.string(), findings, [&] { return read_json(path, kLimit); });
}

std::optional<StoredManifest> parse_manifest(std::string_view text, const std::string& source_name,
                                             Findings* findings) {
  return guarded(source_name, findings, [&] { return parse_json(text, source_name); });
}

}  // namespace nibble
