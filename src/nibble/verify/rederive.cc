#include "nibble/verify/rederive.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "nibble/base/error.h"
#include "nibble/base/parallel.h"
#include "nibble/base/progress.h"
#include "nibble/base/stopwatch.h"
#include "nibble/quantize/side_files.h"
#include "nibble/verify/rederived_files.h"
#include "nibble/verify/rederived_unit.h"

namespace nibble {
namespace {

OutputPlan plan_again(const VerifyContext& context, const Recipe& recipe, const std::string& manifest) {
  try {
    return plan_output(*context.base, *context.base_model, recipe.request);
  } catch (const Error& error) {
    // The planner speaks of options; here they come from the manifest.
    Error refusal("the manifest's recipe cannot be carried out on BASE: " + error.message());
    refusal.file(error.file().empty() ? manifest : error.file()).tensor(error.tensor());
    for (const auto& [key, text] : error.values()) refusal.value(key, text);
    throw refusal.way_out("give the BASE that was quantized").way_out("copy nibble.json again");
  }
}

class Rederivation {
 public:
  Rederivation(const VerifyContext& context, Findings* findings)
      : context_(context), findings_(findings), run_(read_recorded_run(context.checkpoint->folder())) {
    check_family();
    check_tool();
    run_.recipe.request.threads = context.options->threads;
    plan_ = plan_again(context, run_.recipe, run_.path);
  }

  Rederived run() {
    const Stopwatch watch;
    compare_recipe();
    const StoredParts parts(*context_.checkpoint, plan_, *context_.base, findings_);
    sums_.differing += parts.unmatched() + (parts.same_files() ? 0 : 1);
    compare_units(parts);
    compare_files(parts.same_files());
    sums_.seconds = watch.seconds();
    return sums_;
  }

 private:
  // Before anything is planned: of another model the plan's errors would say less.
  void check_family() const {
    if (run_.recipe.family == context_.base_model->family_name) return;
    throw Error("BASE is of another family than what was quantized")
        .file(context_.base->path().string())
        .value("recorded", run_.recipe.family)
        .value("base", context_.base_model->family_name)
        .way_out("give the BASE that was quantized");
  }

  void check_tool() {
    same_tool_ = run_.tool == kToolVersion;
    if (same_tool_) return;
    findings_->push_back({Severity::kError,
                          kRederiveRule,
                          run_.path,
                          "",
                          fmt::format("another version of nibble made the checkpoint: headers and configuration name "
                                      "it, so only tensors are compared. Verify with version {} to compare all",
                                      printable(run_.tool)),
                          {{"recorded", run_.tool}, {"this_nibble", kToolVersion}}});
  }

  // What was read must mean what is written: else the recipe was made by hand, or is not complete.
  void compare_recipe() {
    const Json recorded = parse_json(run_.recipe_text, run_.path);
    const Json again = recipe_json(*context_.base_model, plan_, run_.recipe.request);
    for (const auto& [key, value] : again.items()) {
      const Json& before = recorded.at(key);
      if (before == value) continue;
      findings_->push_back({Severity::kError,
                            kRederiveRule,
                            run_.path,
                            "",
                            fmt::format("the recipe's {} is not as nibble writes it: the manifest was changed", key),
                            {{"field", key}, {"recorded", before.dump()}, {"expected", value.dump()}}});
    }
  }

  void compare_units(const StoredParts& parts) {
    // All shards' units in one list: no thread waits at the end of a shard.
    std::vector<const Unit*> units;
    for (const OutShard& shard : plan_.shards) {
      for (const Unit& unit : shard.units) units.push_back(&unit);
    }
    const int threads = std::max(1, context_.options->threads);
    Progress progress("rederive", plan_.bytes_in, context_.options->quiet);
    const RederiveContext context{
        {context_.base, context_.base_model, &run_.recipe.request, &plan_, kKeepBytes / static_cast<uint64_t>(threads),
         kChunkBytes, [&progress](uint64_t bytes) { progress.add(bytes); }},
        &run_,
        context_.checkpoint,
        &parts,
        same_tool_};
    std::vector<UnitOutcome> outcomes(units.size());
    parallel_for(units.size(), threads, [&](uint64_t i) { outcomes[i] = rederive_unit(context, *units[i]); });
    add(std::move(outcomes));
  }

  void add(std::vector<UnitOutcome> outcomes) {
    uint64_t unrecorded = 0;
    std::string first;
    for (UnitOutcome& outcome : outcomes) {
      sums_.tensors += outcome.tensors;
      sums_.bytes += outcome.bytes;
      sums_.differing += outcome.differing;
      sums_.differing_bytes += outcome.differing_bytes;
      std::move(outcome.findings.begin(), outcome.findings.end(), std::back_inserter(*findings_));
      if (unrecorded == 0) first = outcome.first_unrecorded;
      unrecorded += outcome.unrecorded;
    }
    if (unrecorded == 0) return;
    findings_->push_back({Severity::kError,
                          kRederiveRule,
                          run_.path,
                          first,
                          fmt::format("{} tensor{} that the recipe gives {} not recorded in the manifest: its inputs' "
                                      "hashes are not known, so that equal bytes are all there is. Copy nibble.json "
                                      "again",
                                      unrecorded, unrecorded == 1 ? "" : "s", unrecorded == 1 ? "is" : "are"),
                          {{"tensors", std::to_string(unrecorded)}}});
  }

  void compare_files(bool same_files) {
    const Path& folder = context_.checkpoint->folder();
    // Another version's name stands in the headers and, in some layouts, in the configuration.
    if (!same_tool_) return;
    if (same_files) {
      compare_headers(folder, plan_, *context_.base, &sums_, findings_);
      compare_index(folder, plan_, *context_.base, &sums_, findings_);
    }
    const auto texts = side_texts(*context_.base, *context_.base_model, plan_, run_.recipe.request);
    compare_side_files(folder, *context_.base, texts, &sums_, findings_);
  }

  const VerifyContext& context_;
  Findings* findings_;
  RecordedRun run_;
  OutputPlan plan_;
  Rederived sums_;
  bool same_tool_ = true;
};

}  // namespace

Rederived rederive(const VerifyContext& context, Findings* findings) { return Rederivation(context, findings).run(); }

}  // namespace nibble
