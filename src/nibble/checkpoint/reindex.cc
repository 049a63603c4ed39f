#include <fmt/format.h>

#include "nibble/base/parallel.h"
#include "nibble/checkpoint/checkpoint.h"
#include "nibble/checkpoint/folder.h"
#include "nibble/checkpoint/shard_index.h"
#include "nibble/checkpoint/shard_reader.h"
#include "nibble/checkpoint/tensor_checks.h"

namespace nibble {
namespace {

// Numbered shards if there are any: what lies beside them (a consolidated copy, an adapter) is not part of the model.
std::vector<std::string> files_to_index(const Path& folder, Findings* findings) {
  const FolderFiles there = sort_folder(folder);
  std::vector<std::string> numbered = numbered_shards(there.safetensors);
  if (numbered.empty()) numbered = there.safetensors;
  if (numbered.empty()) {
    findings->push_back(finding_of(
        Error("there is no .safetensors file to index").file(folder.string()).way_out("name the folder of the shards"),
        "no-weights"));
  }
  for (const std::string& name : missing_shards(numbered)) {
    findings->push_back(finding_of(Error("a shard is missing, so an index would be incomplete")
                                       .file((folder / name).string())
                                       .value("shards_present", numbered.size())
                                       .way_out("fetch it"),
                                   "missing-file"));
  }
  return numbered;
}

}  // namespace

void rebuild_index(const Path& folder, Findings* findings) {
  Findings found;
  ShardIndex index;
  index.files = files_to_index(folder, &found);
  OpenOptions options;
  options.threads = default_threads();
  std::vector<StoredTensor> tensors;
  std::vector<CheckedFile> checked;
  uint64_t total = 0;
  for (ShardContents& shard : read_shards(folder, index.files, options)) {
    for (StoredTensor& tensor : shard.tensors) {
      tensor.file = static_cast<uint32_t>(checked.size());
      total += tensor.bytes;
      index.weights.emplace_back(tensor.name, tensor.file);
      tensors.push_back(std::move(tensor));
    }
    checked.push_back({shard.file.name, shard.header_read});
    found.insert(found.end(), shard.findings.begin(), shard.findings.end());
  }
  NameIndex names;
  index_names(folder, checked, tensors, &names, &found);
  index.total_size = total;
  if (!has_error(found)) {
    const Path path = folder / kIndexName;
    write_atomically(path, shard_index_text(index));
    Finding done = finding_of(Error("the index was rebuilt")
                                  .file(path.string())
                                  .value("files", index.files.size())
                                  .value("tensors", index.weights.size())
                                  .value("total_size", total),
                              "index-mismatch");
    done.severity = Severity::kNote;
    found.push_back(std::move(done));
  }
  findings->insert(findings->end(), found.begin(), found.end());
}

}  // namespace nibble
