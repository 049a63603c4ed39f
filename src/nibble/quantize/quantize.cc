#include "nibble/quantize/quantize.h"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "nibble/base/error.h"
#include "nibble/base/hash.h"
#include "nibble/base/log.h"
#include "nibble/base/peak_memory.h"
#include "nibble/base/progress.h"
#include "nibble/base/stopwatch.h"
#include "nibble/base/strings.h"
#include "nibble/quantize/earlier_run.h"
#include "nibble/quantize/finished_target.h"
#include "nibble/quantize/journal.h"
#include "nibble/quantize/manifest.h"
#include "nibble/quantize/output_plan.h"
#include "nibble/quantize/recipe.h"
#include "nibble/quantize/shard_writer.h"
#include "nibble/quantize/side_files.h"
#include "nibble/quantize/target_checks.h"

namespace nibble {
namespace {

// What the tables of a large model leave behind are hundreds of megabytes of small holes, which the allocator keeps.
void give_back_freed_memory() {
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
}

QuantizeRow row_of(const Json& tensor) {
  QuantizeRow row;
  row.name = tensor.at("name");
  row.role = tensor.at("role");
  row.action = tensor.at("action");
  row.reason = tensor.at("reason");
  row.format = tensor.at("format");
  if (tensor.at("rel_rmse").is_number()) {
    row.rel_rmse = tensor.at("rel_rmse");
    row.lossless = tensor.at("snr_db").is_null();
    row.snr_db = row.lossless ? 0 : tensor.at("snr_db").get<double>();
  }
  if (tensor.contains("note")) row.note = tensor.at("note");
  if (tensor.contains("changed_scales")) row.scale_changes = read_scale_changes(tensor, kManifestName);
  return row;
}

// Of a target whose weights are complete.
std::string note_of_missing(const std::vector<SideFile>& missing) {
  if (missing.empty()) return "the target is already complete; nothing was written";
  std::vector<std::string> names;
  names.reserve(missing.size());
  for (const SideFile& file : missing) names.push_back(printable(file.name));
  return fmt::format("the target's weights are already complete; what was missing beside them was written again: {}",
                     fmt::join(names, ", "));
}

QuantizeRow planned_row(const OutWeight& out) {
  QuantizeRow row;
  row.name = out.name;
  row.role = role_name(out.param.role);
  row.action = action_name(out.action);
  row.reason = out.reason;
  row.format = out.format.name;
  return row;
}

class Run {
 public:
  explicit Run(const QuantizeRequest& request)
      : request_(request),
        source_(Checkpoint::open(request.source, {ReadMode::kPread, request.allow_trailing, request.threads})) {
    Findings findings;
    model_ = load_model(source_, &findings);
    throw_first_error(findings);
    plan_ = plan_output(source_, model_, request);
    texts_ = side_texts(source_, model_, plan_, request);
  }

  QuantizeResult run() {
    describe();
    if (request_.dry_run) return dry_run();
    if (already_done()) return std::move(result_);
    check_target(request_.target, source_.folder());
    NewFolders made(request_.target);  // first: only the attempt shows whether the path can be
    check_space(request_.target, plan_, bytes_beside_the_shards());
    if (open_journal()) {
      write_shards();
      finish();
      tell_rounded_casts();
    }
    made.keep();
    return std::move(result_);
  }

 private:
  void describe() {
    result_.family = model_.family_name;
    result_.format = request_.format.name;
    result_.rule = request_.rule.rule == nullptr ? "" : request_.rule.name();
    result_.layout = plan_.layout == nullptr ? "dense" : std::string(plan_.layout->name());
    result_.notes = plan_.notes;
    std::ranges::move(left_folder_notes(source_), std::back_inserter(result_.notes));
    result_.bytes_in = plan_.bytes_in;
    result_.bytes_out = plan_.bytes_out;
    result_.buffer_bytes = kKeepBytes + static_cast<uint64_t>(request_.threads) * 4 * kChunkBytes;
    for (const auto& note : result_.notes) log::info(note);
  }

  QuantizeResult dry_run() {
    result_.dry_run = true;
    for (const OutShard& shard : plan_.shards) {
      for (const Unit& unit : shard.units) {
        for (const uint32_t out : unit.outs) result_.tensors.push_back(planned_row(plan_.outs[out]));
      }
    }
    result_.peak_rss_bytes = peak_memory_bytes();
    return std::move(result_);
  }

  std::vector<std::string> shard_files() const {
    std::vector<std::string> files;
    files.reserve(plan_.shards.size());
    for (const OutShard& shard : plan_.shards) files.push_back(shard.file_name);
    return files;
  }

  // What the plan only hoped for.
  void tell_rounded_casts() {
    const auto rounded = std::ranges::count_if(
        result_.tensors, [](const QuantizeRow& row) { return row.note.starts_with(kRoundedInstead); });
    if (rounded == 0) return;
    result_.notes.push_back(fmt::format("{} weight{} could not be cast exactly and {} rounded by {}; {} says where",
                                        rounded, rounded == 1 ? "" : "s", rounded == 1 ? "was" : "were", result_.rule,
                                        kManifestName));
    log::info(result_.notes.back());
  }

  Path manifest_path() const { return request_.target / kManifestName; }

  Path journal_folder() const { return request_.target / kJournalFolder; }

  // A folder that stays does no harm, and the next run on this target tries again.
  void try_to_remove_journal_folder() const {
    const std::error_code code = remove_journal_folder(request_.target);
    if (code) log::warning(fmt::format("{} could not be removed: {}", journal_folder().string(), code.message()));
  }

  // A finished target of the same recipe and inputs is left alone. Where there is a journal's folder somebody may have
  // it in hand (--restart begins with what is finished), so that it is judged under the lock.
  bool already_done() {
    std::error_code ignored;
    if (request_.restart || !std::filesystem::exists(manifest_path(), ignored)) return false;
    if (!std::filesystem::exists(journal_folder(), ignored)) return is_complete();
    const FolderLock lock(request_.target);
    return tidied_if_complete();
  }

  // Under a FolderLock.
  bool tidied_if_complete() {
    if (!is_complete()) return false;
    try_to_remove_journal_folder();  // of a run killed at its very end
    return true;
  }

  bool is_complete() {
    std::error_code ignored;
    if (request_.restart || std::filesystem::exists(journal_folder() / kJournalState, ignored) ||
        !std::filesystem::exists(manifest_path(), ignored))
      return false;
    const Json manifest = finished_manifest(manifest_path());
    const std::optional<std::string> index = output_index_text(plan_, source_);
    std::vector<SideFile> beside = side_files(source_, texts_);
    if (index) beside.push_back({kOutputIndexName, &*index});
    const auto missing =
        check_finished(manifest, recipe_json(model_, plan_, request_), source_, plan_, beside, request_.target);
    for (const SideFile& file : missing) write_side_file(source_, file, request_.target);
    try {
      for (const auto& tensor : manifest.at("tensors")) result_.tensors.push_back(row_of(tensor));
    } catch (const Json::exception& error) {
      throw damaged_manifest(manifest_path(), error.what());
    }
    result_.notes.push_back(note_of_missing(missing));
    log::info(result_.notes.back());
    result_.peak_rss_bytes = peak_memory_bytes();
    return true;
  }

  std::vector<std::string> side_names() const {
    std::vector<std::string> names{kOutputIndexName};
    for (const SideFile& file : side_files(source_, texts_)) names.push_back(file.name);
    return names;
  }

  uint64_t bytes_beside_the_shards() const {
    return side_bytes(source_, texts_) + index_bytes(plan_, source_) +
           record_bytes(source_, model_, plan_, request_, recipe_json(model_, plan_, request_), side_names());
  }

  // False if another worker has finished the target since this one looked: a new journal would begin it again.
  bool open_journal() {
    const FolderLock lock(request_.target);
    if (tidied_if_complete()) return false;
    presence_.emplace(request_.target);
    const Company company = presence_->company();
    if (request_.restart && company == Company::kOthers) {
      throw Error("another process works on this target")
          .file(request_.target.string())
          .way_out("wait for it, or stop it: then --restart");
    }
    if (request_.restart) remove_earlier_run(request_.target);
    journal_ = Journal::open(request_.target, recipe_json(model_, plan_, request_), source_, shard_files());
    if (nobody_else(company)) remove_unrecorded_shards();
    return true;
  }

  // Where the file system has no locks, a run that was not told of other workers takes it that there are none.
  bool nobody_else(Company company) const {
    return company == Company::kAlone || (company == Company::kUnknown && request_.workers == 1);
  }

  // They are made again, and must not take the space that this needs.
  void remove_unrecorded_shards() const {
    for (size_t s = 0; s < plan_.shards.size(); ++s) {
      std::error_code ignored;
      if (!journal_->finished(s)) std::filesystem::remove(request_.target / plan_.shards[s].file_name, ignored);
    }
  }

  void write_shards() {
    uint64_t bytes_left = 0;
    std::vector<size_t> mine;
    for (size_t s = 0; s < plan_.shards.size(); ++s) {
      if (s % request_.workers != request_.worker - 1 || journal_->finished(s)) continue;
      mine.push_back(s);
      bytes_left += plan_.shards[s].bytes_in;
    }
    Progress progress("quantize", bytes_left, request_.quiet);
    const EncodeContext context{&source_,
                                &model_,
                                &request_,
                                &plan_,
                                kKeepBytes / static_cast<uint64_t>(std::max(1, request_.threads)),
                                kChunkBytes,
                                [&progress](uint64_t bytes) { progress.add(bytes); }};
    try {
      for_shards(mine, context);
    } catch (const Error&) {
      try {
        forget_unless_something_is_done();
      } catch (const Error& second) {
        log::info("the journal stays: " + second.message());
      }
      throw;
    }
    result_.bytes_done = bytes_left;
  }

  // The end of a shard is one thread's work: with several, the next shard is encoded meanwhile.
  void for_shards(const std::vector<size_t>& mine, const EncodeContext& context) {
    std::future<void> ending;
    for (const size_t s : mine) {
      auto writer = std::make_shared<ShardWriter>(context, plan_.shards[s], request_.target);
      if (journal_->finished(s)) continue;  // by a process that was here before this one held the file
      writer->encode(request_.threads);
      if (ending.valid()) ending.get();
      ending = std::async(request_.threads > 1 ? std::launch::async : std::launch::deferred, [this, s, writer] {
        record(s, writer->finish());
        writer->commit();
      });
      if (request_.threads == 1) ending.get();
    }
    if (ending.valid()) ending.get();
  }

  // A refusal advises other options: a journal without a shard would hold the next run to the old ones. What another
  // process is at work on stays.
  void forget_unless_something_is_done() {
    std::error_code ignored;
    const FolderLock lock(request_.target);
    if (request_.workers > 1 || !nobody_else(presence_->company())) return;
    for (const OutShard& shard : plan_.shards) {
      if (std::filesystem::exists(request_.target / shard.file_name, ignored)) return;
    }
    try_to_remove_journal_folder();
  }

  void record(size_t s, const ShardResult& result) const {
    journal_->record(s, {result.bytes, result.sha256}, [&](const RowVisitor& add) {
      for (size_t u = 0; u < result.units.size(); ++u) {
        const Unit& unit = plan_.shards[s].units[u];
        for (size_t o = 0; o < unit.outs.size(); ++o) {
          add(tensor_row(source_, plan_.outs[unit.outs[o]], request_, result.units[u].outs[o],
                         result.units[u].tensor_hashes, model_)
                  .dump());
        }
      }
    });
  }

  void measure() {
    result_.seconds = watch_.seconds();
    result_.peak_rss_bytes = peak_memory_bytes();
    result_.input_gb_per_s = result_.seconds > 0 ? static_cast<double>(result_.bytes_done) / result_.seconds / 1e9 : 0;
  }

  // Whoever finds all shards done writes the rest; the lock keeps two from doing so at once.
  void finish() {
    const FolderLock lock(request_.target);
    std::error_code ignored;
    const bool other_finished = !std::filesystem::exists(journal_folder() / kJournalState, ignored);
    if (other_finished) {
      try_to_remove_journal_folder();
    } else if (!journal_->all_finished()) {
      for (size_t s = 0; s < plan_.shards.size(); ++s) result_.shards_left += journal_->finished(s) ? 0u : 1u;
      result_.finished = result_.shards_left == 0;
      if (!result_.finished) return measure();
    }
    if (!other_finished) write_end();
    measure();
  }

  ShardRecord finished_record(size_t s) const {
    auto record = journal_->finished(s);
    if (record) return std::move(*record);
    throw Error("a finished shard has gone")
        .file((request_.target / plan_.shards[s].file_name).string())
        .way_out("run the same command again");
  }

  // What is recorded is what lies there.
  OutputFileRecord written_file(const std::string& name) const {
    const Path path = request_.target / name;
    return {name, std::filesystem::file_size(path), sha256_of_file(path)};
  }

  void write_end() {
    std::vector<OutputFileRecord> files;
    for (size_t s = 0; s < plan_.shards.size(); ++s) {
      ShardRecord record = finished_record(s);
      files.push_back({plan_.shards[s].file_name, record.bytes, std::move(record.sha256)});
    }
    for (const SideFile& file : side_files(source_, texts_)) {
      write_side_file(source_, file, request_.target);
      files.push_back(written_file(file.name));
    }
    const Json recipe = recipe_json(model_, plan_, request_);
    // Makes room for the index and the rows of a large model.
    model_ = Model();
    give_back_freed_memory();
    std::optional<std::string> index = output_index_text(plan_, source_);
    if (index) files.push_back({kOutputIndexName, index->size(), sha256_hex(std::as_bytes(std::span(*index)))});
    ManifestWriter manifest(manifest_path(), manifest_head(recipe, source_, files, request_.sha256_inputs));
    for_rows([&manifest](std::string_view row) { manifest.add(row); });
    manifest.commit();
    if (index) write_atomically(request_.target / kOutputIndexName, *index);
    index.reset();
    result_.tensors.reserve(plan_.outs.size());
    plan_.outs = {};
    give_back_freed_memory();
    for_rows([this](std::string_view row) { result_.tensors.push_back(row_of(parse_json(row, "journal"))); });
    journal_->remove();
  }

  // Of all shards, in the plan's order.
  void for_rows(const RowVisitor& visit) const {
    for (size_t s = 0; s < plan_.shards.size(); ++s) journal_->for_rows(s, visit);
  }

  const QuantizeRequest& request_;
  Checkpoint source_;
  Model model_;
  OutputPlan plan_;
  std::vector<std::pair<std::string, std::string>> texts_;
  std::optional<Presence> presence_;
  std::optional<Journal> journal_;
  QuantizeResult result_;
  Stopwatch watch_;
};

}  // namespace

QuantizeResult quantize(const QuantizeRequest& request) {
  try {
    return Run(request).run();
  } catch (Error& error) {
    // Whoever knows no better place means the source as a whole.
    if (error.file().empty()) error.file(request.source.string());
    throw;
  }
}

}  // namespace nibble
