#include "nibble/quantize/journal.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <system_error>
#include <utility>

#include "nibble/base/error.h"
#include "nibble/base/hash.h"
#include "nibble/base/log.h"
#include "nibble/base/system_error.h"
#include "nibble/base/text_file.h"
#include "nibble/quantize/request.h"

namespace nibble {
namespace {

std::string header_hash(const Checkpoint& source, size_t file) {
  // The names, types, shapes and places of a file's tensors stand for its header.
  Xxh3 hash;
  for (const StoredTensor& tensor : source.tensors()) {
    if (tensor.file != file) continue;
    const std::string line = fmt::format("{}\n{}\n{}\n{}\n", tensor.name, static_cast<int>(tensor.dtype), tensor.offset,
                                         fmt::join(tensor.shape, ","));
    hash.update(std::as_bytes(std::span(line)));
  }
  return hash.hex();
}

Json source_state(const Checkpoint& source) {
  Json files = Json::object();
  for (size_t f = 0; f < source.files().size(); ++f) {
    const StoredFile& file = source.files()[f];
    files[file.name] = Json{{"bytes", file.bytes}, {"modified_ns", file.mtime_ns}, {"header", header_hash(source, f)}};
  }
  return Json{{"files", std::move(files)}, {"config", source.config()}};
}

// One line, with NaN and the infinities as Python writes them. A line break inside a string is escaped, so that those
// left are the layout's.
std::string line_of(const Json& value) {
  const std::string text = json_text(value);
  std::string line;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\n') {
      at = std::min(text.find_first_not_of(' ', at + 1), text.size()) - 1;
    } else {
      line += text[at];
    }
  }
  return line;
}

Error damaged(const Path& journal) {
  return std::move(
      Error("the journal of an earlier run is damaged").file(journal.string()).way_out("--restart to begin again"));
}

// Throws at the first leaf that differs, naming its path with the old and the new value.
void refuse_difference(const Json& before, const Json& now, const std::string& path, const Path& journal) {
  if (before.is_object() && now.is_object()) {
    const auto below = [&path](const std::string& key) { return path.empty() ? key : fmt::format("{}.{}", path, key); };
    for (const auto& [key, value] : before.items()) {
      const auto other = now.find(key);
      refuse_difference(value, other == now.end() ? Json() : *other, below(key), journal);
    }
    for (const auto& [key, value] : now.items()) {
      if (!before.contains(key)) refuse_difference(Json(), value, below(key), journal);
    }
    return;
  }
  // As text, since NaN is not equal to itself.
  if (before == now || line_of(before) == line_of(now)) return;
  if (path.empty()) throw damaged(journal);
  throw Error(fmt::format("cannot resume: {} is not what it was when this run began", path))
      .file(journal.string())
      .value("field", path)
      .value("old", before.is_null() ? std::string("absent") : line_of(before))
      .value("new", now.is_null() ? std::string("absent") : line_of(now))
      .way_out("run with the old inputs and options")
      .way_out("--restart to begin again");
}

Json read_state(const Path& path) {
  try {
    return read_json(path);
  } catch (const Error& error) {
    throw damaged(path).value("reason", error.message());
  }
}

// The first line of a shard's record; as long whatever the hash is.
std::string head_line(const ShardRecord& record, const Xxh3& rows) {
  return Json{{"bytes", record.bytes}, {"sha256", record.sha256}, {"rows_xxh3_128", rows.hex()}}.dump() + "\n";
}

// With the end of its line, so that empty lines count.
void add_row(std::string_view row, Xxh3* hash) {
  constexpr std::string_view kEnd = "\n";
  hash->update(std::as_bytes(std::span(row)));
  hash->update(std::as_bytes(std::span(kEnd)));
}

// The first line is the record, the others are the rows.
ShardRecord read_record(const Path& path, const RowVisitor& visit) {
  std::optional<Json> head;
  Xxh3 rows;
  for_lines(path, [&](std::string_view line) {
    if (!head) {
      head = parse_json(line, path.string());
      return;
    }
    add_row(line, &rows);
    visit(line);
  });
  const Json json = head.value_or(Json());
  if (rows.hex() != json_string(json, "rows_xxh3_128", path.string())) {
    throw Error("its rows are not those that were written")
        .file(path.string())
        .way_out("run the same command again: it makes the shard again");
  }
  return {json_uint(json, "bytes", path.string()).value_or(0), json_string(json, "sha256", path.string()).value_or("")};
}

}  // namespace

Journal Journal::open(const Path& target, const Json& recipe, const Checkpoint& source,
                      const std::vector<std::string>& shard_files) {
  Journal journal;
  journal.folder_ = target / kJournalFolder;
  journal.shard_files_ = shard_files;
  const Path state_path = journal.folder_ / kJournalState;
  const Json state{
      {"contract", kContractVersion}, {"recipe", recipe}, {"source", source_state(source)}, {"shards", shard_files}};
  std::error_code ignored;
  if (std::filesystem::exists(state_path, ignored)) {
    refuse_difference(read_state(state_path), state, "", state_path);
  } else {
    write_atomically(state_path, json_text(state));
  }
  return journal;
}

std::optional<ShardRecord> Journal::finished(size_t shard) const {
  std::error_code ignored;
  if (!std::filesystem::exists(record_path(shard), ignored)) return std::nullopt;
  ShardRecord record;
  try {
    record = read_record(record_path(shard), [](std::string_view) {});
  } catch (const std::exception& error) {
    log::warning(fmt::format("a record of the journal is damaged, its shard is made again: {}", error.what()));
    return std::nullopt;
  }
  // A record without its file (somebody removed it) is work to be done again.
  const Path shard_path = folder_.parent_path() / shard_files_[shard];
  if (!std::filesystem::exists(shard_path, ignored) || std::filesystem::file_size(shard_path, ignored) != record.bytes)
    return std::nullopt;
  return record;
}

void Journal::record(size_t shard, const ShardRecord& record,
                     const std::function<void(const RowVisitor&)>& give_rows) const {
  TextFile file(record_path(shard));
  Xxh3 rows;
  file.add(head_line(record, rows));
  give_rows([&](std::string_view row) {
    add_row(row, &rows);
    file.add(row);
    file.add("\n");
  });
  file.replace_head(head_line(record, rows));
  file.commit();
}

void Journal::for_rows(size_t shard, const RowVisitor& visit) const { read_record(record_path(shard), visit); }

bool Journal::all_finished() const {
  for (size_t s = 0; s < shard_files_.size(); ++s) {
    if (!finished(s)) return false;
  }
  return true;
}

// The state first: without it the folder is a remnant that anybody may remove, and the result is complete.
void Journal::remove() const {
  std::error_code code;
  std::filesystem::remove(folder_ / kJournalState, code);
  if (!code) code = remove_journal_folder(folder_.parent_path());
  if (code) throw system_error("cannot remove the journal", folder_, code.value());
}

}  // namespace nibble
