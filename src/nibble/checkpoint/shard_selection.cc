#include "nibble/checkpoint/shard_selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "nibble/checkpoint/container_error.h"

namespace nibble {
namespace {

constexpr const char* kReindex = "rebuild the index from the shards that are there with `--reindex`";

void report(Findings* findings, Severity severity, const char* rule, const Error& error) {
  findings->push_back(finding_of(error, rule));
  findings->back().severity = severity;
}

// In the hub's cache a shard is a link to a blob; a link into nothing means that the blob was removed or never came.
Error missing_file(const Path& folder, const std::string& name) {
  Error error("a shard is missing");
  error.file((folder / name).string());
  std::error_code code;
  const Path target = std::filesystem::read_symlink(folder / name, code);
  if (!code) error.value("is_a_link_to", target.string());
  return error;
}

void report_missing_numbers(const Path& folder, const std::vector<std::string>& names, Findings* findings) {
  for (const std::string& name : missing_shards(names)) {
    report(findings, Severity::kError, "missing-file",
           missing_file(folder, name).value("shards_present", names.size()).way_out("fetch it"));
  }
}

void report_extra(const Path& folder, const std::vector<std::string>& names, Findings* findings) {
  for (const std::string& name : names) {
    report(findings, Severity::kWarning, "extra-file",
           Error("a safetensors file that is not taken to be part of the model; it is not read")
               .file((folder / name).string())
               .way_out("ignore it if it is another form of the model"));
  }
}

std::vector<std::string> without(const std::vector<std::string>& all, const std::vector<std::string>& taken) {
  std::vector<std::string> rest;
  std::ranges::set_difference(all, taken, std::back_inserter(rest));
  return rest;
}

std::vector<std::string> select_without_index(const Path& folder, const FolderFiles& files, Findings* findings) {
  const auto& all = files.safetensors;
  if (std::ranges::find(all, "model.safetensors") != all.end()) {
    report_extra(folder, without(all, {"model.safetensors"}), findings);
    return {"model.safetensors"};
  }
  if (all.size() <= 1) {
    report_missing_numbers(folder, all, findings);
    return all;
  }
  std::vector<std::string> numbered = numbered_shards(all);
  Error error(numbered.empty() ? "several safetensors files and no index: which of them belong together is not known"
                               : "several shards and no index; they are read as their numbers say");
  error.file((folder / kIndexName).string()).value("files", all.size()).way_out("fetch the index").way_out(kReindex);
  if (numbered.empty()) error.way_out("name the one file that is meant");
  report(findings, numbered.empty() ? Severity::kError : Severity::kWarning, "missing-file", error);
  if (numbered.empty()) return all;
  report_missing_numbers(folder, numbered, findings);
  report_extra(folder, without(all, numbered), findings);
  return numbered;
}

std::optional<ShardIndex> read_index(const Path& folder, const FolderFiles& files, Findings* findings) {
  try {
    return read_shard_index(folder / files.indexes.front());
  } catch (const UnreadableFileError& error) {
    findings->push_back(finding_of(error, "unreadable-file"));
    return std::nullopt;
  } catch (const Error& error) {
    findings->push_back(finding_of(error, "bad-index"));
    return std::nullopt;
  }
}

// How the index's files compare with the folder's, both sorted.
struct Comparison {
  std::vector<std::string> present, missing, others;
};

Comparison compare(std::vector<std::string> named, const std::vector<std::string>& found) {
  Comparison result;
  std::sort(named.begin(), named.end());
  std::ranges::set_intersection(named, found, std::back_inserter(result.present));
  std::ranges::set_difference(named, found, std::back_inserter(result.missing));
  std::ranges::set_difference(found, named, std::back_inserter(result.others));
  return result;
}

void report_stale(const std::string& index_path, const Comparison& files, Findings* findings) {
  report(findings, Severity::kError, "index-mismatch",
         Error(fmt::format("the index is stale: it names {} files, {} of them present, while {} other safetensors "
                           "files were found",
                           files.present.size() + files.missing.size(), files.present.size(), files.others.size()))
             .file(index_path)
             .value("named", files.present.size() + files.missing.size())
             .value("present", files.present.size())
             .value("others", files.others.size())
             .value("first_missing", files.missing.front())
             .value("first_other", files.others.front())
             .way_out(kReindex)
             .way_out("fetch the files that the index names"));
}

void report_missing(const Path& folder, const ShardIndex& index, const Comparison& files, Findings* findings) {
  std::vector<uint64_t> tensors(index.files.size());
  for (const auto& [name, file] : index.weights) ++tensors[file];
  for (const std::string& name : files.missing) {
    const auto number = std::ranges::find(index.files, name) - index.files.begin();
    report(findings, Severity::kError, "missing-file",
           missing_file(folder, name)
               .value("tensors_in_it", tensors[static_cast<size_t>(number)])
               .value("named", index.files.size())
               .value("present", files.present.size())
               .value("others", files.others.size())
               .way_out("fetch it"));
  }
}

}  // namespace

ShardSelection select_shards(const Path& folder, const FolderFiles& files, Findings* findings) {
  ShardSelection selection;
  if (files.indexes.empty()) {
    selection.files = select_without_index(folder, files, findings);
    return selection;
  }
  selection.index_path = (folder / files.indexes.front()).string();
  std::optional<ShardIndex> index = read_index(folder, files, findings);
  if (!index) {
    Findings repeated;  // that there is no usable index has been said
    selection.files = select_without_index(folder, files, &repeated);
    return selection;
  }
  Comparison found = compare(index->files, files.safetensors);
  if (!found.missing.empty() && !found.others.empty()) report_stale(selection.index_path, found, findings);
  if (found.present.empty() && !found.others.empty()) {
    selection.files = std::move(found.others);  // so that they can be listed
    return selection;
  }
  report_missing(folder, *index, found, findings);
  // A shard of the same series that the index forgot is read all the same: its tensors are missing from the index, or
  // stand twice. Anything else beside the shards is another form of the model.
  std::vector<std::string> extra;
  for (const std::string& name : found.others) {
    (in_series_of(name, index->files) ? found.present : extra).push_back(name);
  }
  std::sort(found.present.begin(), found.present.end());
  if (found.missing.empty()) report_extra(folder, extra, findings);
  selection.files = std::move(found.present);
  selection.index = std::move(index);
  return selection;
}

}  // namespace nibble
