#include "nibble/checkpoint/tensor_checks.h"

#include <fmt/format.h>

#include <algorithm>

namespace nibble {
namespace {

// One finding per tensor up to a limit, then one that counts the rest: an index of another model must not print 500,000
// lines.
class Capped {
 public:
  Capped(const char* rule, Findings* findings) : rule_(rule), findings_(findings) {}
  ~Capped() {
    if (count_ <= kShown) return;
    Finding last;
    last.rule = rule_;
    last.file = file_;
    last.message = fmt::format("{} more tensors like the {} above", count_ - kShown, kShown);
    last.values = {{"tensors", std::to_string(count_)}};
    findings_->push_back(std::move(last));
  }
  Capped(const Capped&) = delete;
  Capped& operator=(const Capped&) = delete;

  template <typename MakeError>
  void add(MakeError&& make_error) {
    if (++count_ > kShown) return;
    findings_->push_back(finding_of(make_error(), rule_));
    file_ = findings_->back().file;
  }

 private:
  static constexpr uint64_t kShown = 20;
  const char* rule_;
  Findings* findings_;
  uint64_t count_ = 0;
  std::string file_;
};

std::string span_of(const StoredTensor& tensor) {
  return fmt::format("[{}, {}]", tensor.offset, tensor.offset + tensor.bytes);
}

constexpr const char* kReindex = "rebuild the index with `--reindex` if the shards are right";

}  // namespace

void index_names(const Path& folder, const std::vector<CheckedFile>& files, const std::vector<StoredTensor>& tensors,
                 NameIndex* names, Findings* findings) {
  Capped duplicates("duplicate-tensor", findings);
  names->reserve(tensors.size());
  for (const StoredTensor& tensor : tensors) {
    const int64_t earlier = names->insert(tensor.name);
    if (earlier < 0) continue;
    const StoredTensor& first = tensors[static_cast<size_t>(earlier)];
    duplicates.add([&] {
      return Error("a tensor stands in two files")
          .file((folder / files[tensor.file].name).string())
          .tensor(tensor.name)
          .value("first_file", files[first.file].name)
          .value("first_bytes_at", span_of(first))
          .value("second_file", files[tensor.file].name)
          .value("second_bytes_at", span_of(tensor))
          .way_out("remove the file that does not belong to this checkpoint");
    });
  }
}

void check_index(const ShardIndex& index, const std::string& index_path, const std::vector<CheckedFile>& files,
                 const std::vector<StoredTensor>& tensors, const NameIndex& names, Findings* findings) {
  std::vector<int64_t> number(index.files.size(), -1);  // of the index's files among `files`
  for (size_t i = 0; i < index.files.size(); ++i) {
    const auto at = std::ranges::find(files, index.files[i], &CheckedFile::name);
    if (at != files.end() && at->header_read) number[i] = at - files.begin();
  }
  std::vector<bool> named(tensors.size());
  bool all_there = true;
  uint64_t total = 0;
  {
    Capped mismatches("index-mismatch", findings);
    for (const auto& [name, file] : index.weights) {
      const int64_t at = names.find(name);
      if (at >= 0) named[static_cast<size_t>(at)] = true;
      if (at >= 0) total += tensors[static_cast<size_t>(at)].bytes;
      all_there = all_there && at >= 0;
      if (number[file] < 0) continue;  // reported as missing or damaged
      if (at >= 0 && tensors[static_cast<size_t>(at)].file == number[file]) continue;
      mismatches.add([&, &tensor = name, listed = file] {
        Error error(at < 0 ? "the index names a tensor that its shard does not hold"
                           : "a tensor lies in another shard than the index says");
        error.file(index_path).tensor(tensor).value("named_shard", index.files[listed]);
        if (at >= 0) error.value("found_in", files[tensors[static_cast<size_t>(at)].file].name);
        return error.way_out(kReindex).way_out("fetch the shard again");
      });
    }
  }
  {
    Capped unnamed("index-mismatch", findings);
    for (size_t i = 0; i < tensors.size(); ++i) {
      // A second tensor of one name is reported as such.
      if (named[i] || names.find(tensors[i].name) != static_cast<int64_t>(i)) continue;
      unnamed.add([&] {
        return Error("a shard holds a tensor that the index does not name")
            .file(index_path)
            .tensor(tensors[i].name)
            .value("found_in", files[tensors[i].file].name)
            .way_out(kReindex);
      });
    }
  }
  if (all_there && index.total_size && *index.total_size != total) {
    Finding note = finding_of(Error("`total_size` in the index is not the sum of its tensors' bytes; it is not used")
                                  .file(index_path)
                                  .value("total_size", *index.total_size)
                                  .value("sum", total),
                              "index-mismatch");
    note.severity = Severity::kNote;
    findings->push_back(std::move(note));
  }
}

}  // namespace nibble
