// What `nibble.json` records against what is there: size and SHA-256 of every output file, format of every tensor.
// Documents (README.md) may be edited: a note. Without the manifest there is nothing to compare: a note.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "nibble/base/error.h"
#include "nibble/base/hash.h"
#include "nibble/base/strings.h"
#include "nibble/quantize/side_files.h"
#include "nibble/verify/rule_helpers.h"

namespace nibble {
namespace {

constexpr std::string_view kName = "manifest-hash";

Finding file_finding(const VerifyContext& context, const RecordedFile& record, std::string message,
                     FindingValues values) {
  return {is_document(record.file) ? Severity::kNote : Severity::kError,
          std::string(kName),
          (context.checkpoint->folder() / record.file).string(),
          "",
          std::move(message),
          std::move(values)};
}

// The hash if it was (or can be) computed; "" in a quick run over weights.
std::string hash_of(const VerifyContext& context, const RecordedFile& record, const Path& path) {
  const auto& files = context.checkpoint->files();
  const auto found =
      std::find_if(files.begin(), files.end(), [&](const StoredFile& file) { return file.name == record.file; });
  if (found != files.end()) {
    const auto index = static_cast<size_t>(found - files.begin());
    return index < context.scan->sha256.size() ? context.scan->sha256[index] : "";
  }
  return sha256_of_file(path);  // configuration and tokenizer
}

void check_file(const VerifyContext& context, const RecordedFile& record, uint64_t* unhashed, Findings* findings) {
  const Path path = context.checkpoint->folder() / record.file;
  std::error_code failure;
  const uint64_t bytes = std::filesystem::file_size(path, failure);
  if (failure) {
    findings->push_back(file_finding(context, record,
                                     "the file is recorded in the manifest but not here: copy it again",
                                     {{"bytes", std::to_string(record.bytes)}}));
    return;
  }
  if (bytes != record.bytes) {
    findings->push_back(file_finding(context, record,
                                     fmt::format("the file has {} bytes and {} are recorded: copy it again",
                                                 with_commas(bytes), with_commas(record.bytes)),
                                     {{"bytes", std::to_string(bytes)}, {"recorded", std::to_string(record.bytes)}}));
    return;
  }
  const std::string sha256 = hash_of(context, record, path);
  if (sha256.empty()) ++*unhashed;
  if (sha256.empty() || sha256 == record.sha256) return;
  findings->push_back(
      file_finding(context, record,
                   fmt::format("the content has changed: SHA-256 {} where {} is recorded. Copy the file "
                               "again, or make it again with `nibble quantize`",
                               sha256, record.sha256),
                   {{"sha256", sha256}, {"recorded", record.sha256}}));
}

void check_tensors(const VerifyContext& context, Findings* findings) {
  const WeightTable& table = context.model->table;
  std::set<std::string_view> recorded;
  for (const RecordedTensor& tensor : context.manifest->tensors) {
    recorded.insert(tensor.name);
    const int64_t found = table.find(tensor.name);
    if (found < 0) {
      findings->push_back({Severity::kError,
                           std::string(kName),
                           context.manifest->path,
                           tensor.name,
                           "the tensor is recorded in the manifest but not stored: copy the folder again",
                           {}});
      continue;
    }
    const std::string& format = table.weights()[static_cast<size_t>(found)].format.name;
    if (tensor.format.empty() || tensor.format == format) continue;
    findings->push_back(
        weight_finding(context, static_cast<size_t>(found), Severity::kError, kName,
                       fmt::format("stored as {} where the manifest records {}: one of the two is from another run",
                                   format, tensor.format),
                       {{"stored", format}, {"recorded", tensor.format}}));
  }
  if (recorded.empty()) return;
  for (size_t w = 0; w < table.weights().size(); ++w) {
    if (recorded.contains(table.weights()[w].name)) continue;
    findings->push_back(
        weight_finding(context, w, Severity::kWarning, kName,
                       "the tensor is stored but not recorded in the manifest: it came from elsewhere"));
  }
}

// What every manifest of ours has. Without it nothing would be compared, and nobody would know.
void check_record(const VerifyContext& context, Findings* findings) {
  const auto report = [&](Severity severity, std::string file, std::string message) {
    findings->push_back({severity, std::string(kName), std::move(file), "", std::move(message), {}});
  };
  const StoredManifest& manifest = *context.manifest;
  if (manifest.outputs.empty()) {
    report(Severity::kError, manifest.path,
           "the manifest records no files, so nothing can be compared: copy it again, or remove it");
    return;
  }
  if (manifest.contract.empty())
    report(Severity::kWarning, manifest.path, "the manifest does not say which contract it follows: copy it again");
  for (const StoredFile& file : context.checkpoint->files()) {
    if (manifest.find(file.name) == nullptr)
      report(Severity::kWarning, (context.checkpoint->folder() / file.name).string(),
             "the file is not recorded in the manifest: it came from elsewhere, and nothing says what it should hold");
  }
}

void check(const VerifyContext& context, Findings* findings) {
  if (context.manifest == nullptr) {
    const bool malformed = std::any_of(context.reported->begin(), context.reported->end(),
                                       [](const Finding& finding) { return finding.rule == kName; });
    if (malformed) return;
    findings->push_back({Severity::kNote,
                         std::string(kName),
                         context.checkpoint->folder().string(),
                         "",
                         "no nibble.json: no hashes are recorded to compare with",
                         {}});
    return;
  }
  check_record(context, findings);
  uint64_t unhashed = 0;
  for (const RecordedFile& record : context.manifest->outputs) {
    try {
      check_file(context, record, &unhashed, findings);
    } catch (const Error& error) {
      findings->push_back(finding_of(error, std::string(kName)));
    }
  }
  check_tensors(context, findings);
  if (unhashed == 0) return;
  findings->push_back({Severity::kNote,
                       std::string(kName),
                       context.manifest->path,
                       "",
                       fmt::format("{} recorded hashes were not compared: verify without --quick", unhashed),
                       {{"files", std::to_string(unhashed)}}});
}

}  // namespace

extern const Rule kManifestHash = {kName, "recorded sizes, hashes and formats (nibble.json)", check};

}  // namespace nibble
