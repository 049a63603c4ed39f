#include "nibble/verify/verify.h"

#include <fmt/format.h>

#include <functional>

#include "nibble/base/error.h"
#include "nibble/base/stopwatch.h"
#include "nibble/quantize/journal.h"
#include "nibble/verify/against.h"
#include "nibble/verify/finding_list.h"
#include "nibble/verify/proof.h"
#include "nibble/verify/rederive.h"
#include "nibble/verify/rule.h"
#include "nibble/verify/weight_stats.h"

namespace nibble {
namespace {

// Runs one stage; what it throws becomes a finding under `rule`. The second catch is for what should not happen: one
// stage's bug must not hide the findings of the others.
void guarded(std::string_view rule, const std::string& file, Findings* findings, const std::function<void()>& stage) {
  try {
    stage();
  } catch (const Error& error) {
    findings->push_back(finding_of(error, std::string(rule)));
  } catch (const std::exception& error) {
    findings->push_back({Severity::kError,
                         "internal-error",
                         file,
                         "",
                         fmt::format("the check `{}` failed: {}. Please report this with the file's header", rule,
                                     printable(error.what())),
                         {}});
  }
}

OpenOptions open_options(const VerifyOptions& options) {
  OpenOptions open;
  open.allow_trailing = options.allow_trailing;
  open.threads = options.threads;
  return open;
}

// BASE is the yardstick, not the subject: only what makes it useless as one is told, as findings that name its files.
struct Base {
  Base(const Path& path, const VerifyOptions& options, Findings* findings)
      : checkpoint(Checkpoint::scan(path, open_options(options), &own)) {
    guarded("bad-config", path.string(), &own, [&] { model = load_model(checkpoint, &own); });
    usable = !has_error(own);
    for (Finding& finding : own) {
      if (finding.severity != Severity::kError) continue;
      finding.message = "in BASE: " + finding.message;
      findings->push_back(std::move(finding));
    }
  }
  Findings own;
  Checkpoint checkpoint;
  Model model;
  bool usable = false;  // whole enough to quantize from
};

void rederive_if_possible(const VerifyContext& context, const std::optional<Base>& base, VerifyReport* report) {
  if (!base)
    throw Error("--rederive quantizes again, and no manifest records where the source lies")
        .file(context.checkpoint->path().string())
        .way_out("--against BASE, the checkpoint that was quantized");
  if (!base->usable)
    throw Error("BASE is damaged: nothing can be made again from it")
        .file(base->checkpoint.path().string())
        .way_out("repair or fetch BASE again: the errors above name what is wrong");
  report->rederived = rederive(context, &report->findings);
}

// What is missing is then not lost: it has not been made yet.
void check_finished_run(const Checkpoint& checkpoint, Findings* findings) {
  std::error_code ignored;
  const Path state = checkpoint.folder() / kJournalFolder / kJournalState;
  if (!std::filesystem::is_directory(checkpoint.path(), ignored) || !std::filesystem::exists(state, ignored)) return;
  findings->push_back(
      {Severity::kError,
       std::string(kUnfinishedRule),
       state.string(),
       "",
       "`nibble quantize` has not finished this folder: run the same command again, which goes on where "
       "it stopped",
       {}});
}

// A file without tensors is whole and valid, and still no checkpoint.
void check_not_empty(const Checkpoint& checkpoint, Findings* findings) {
  // Where a file could not be read, that is what is wrong.
  if (!checkpoint.tensors().empty() || has_error(*findings)) return;
  findings->push_back({Severity::kError,
                       "no-tensors",
                       checkpoint.path().string(),
                       "",
                       "there is no tensor in it: nothing was checked. Fetch the weights again, or save the model "
                       "again",
                       {{"files", std::to_string(checkpoint.files().size())}, {"tensors", "0"}}});
}

ScanOptions scan_options(const VerifyOptions& options, const Checkpoint& checkpoint,
                         const std::optional<StoredManifest>& manifest) {
  ScanOptions scan;
  scan.quick = options.quick;
  scan.threads = options.threads;
  scan.quiet = options.quiet;
  if (!manifest || options.quick) return scan;
  for (const StoredFile& file : checkpoint.files()) scan.hash_files.push_back(manifest->find(file.name) != nullptr);
  return scan;
}

}  // namespace

VerifyReport verify(const Path& path, const VerifyOptions& options) {
  const Stopwatch watch;
  VerifyReport report;
  Findings& findings = report.findings;
  const Checkpoint checkpoint = Checkpoint::scan(path, open_options(options), &findings);
  const std::string name = path.string();
  check_finished_run(checkpoint, &findings);
  check_not_empty(checkpoint, &findings);
  Model model;
  guarded("bad-config", name, &findings, [&] { model = load_model(checkpoint, &findings); });
  const auto manifest = read_manifest(checkpoint.folder(), &findings);
  std::optional<Base> base;
  if (options.against) base.emplace(*options.against, options, &findings);

  ScanResult scan;
  scan.weights.resize(model.table.weights().size());
  guarded("unreadable", name, &findings,
          [&] { scan = scan_weights(checkpoint, model.table, scan_options(options, checkpoint, manifest)); });
  findings.insert(findings.end(), scan.findings.begin(), scan.findings.end());

  const Findings reported = findings;
  VerifyContext context;
  context.options = &options;
  context.checkpoint = &checkpoint;
  context.model = &model;
  context.scan = &scan;
  context.manifest = manifest ? &*manifest : nullptr;
  context.reported = &reported;
  context.base = base ? &base->checkpoint : nullptr;
  context.base_model = base ? &base->model : nullptr;
  if (base) guarded("against", name, &findings, [&] { report.against = compare_with_base(context); });
  context.against = &report.against;
  const std::vector<Proof> proofs = proofs_of_weights(context);
  context.proofs = &proofs;
  if (options.rederive) guarded(kRederiveRule, name, &findings, [&] { rederive_if_possible(context, base, &report); });
  for (const Rule* rule : rules()) guarded(rule->name, name, &findings, [&] { rule->check(context, &findings); });

  report.ok = !has_error(findings);
  sort_and_group(&findings);
  report.tensors = checkpoint.tensors().size();
  report.bytes = scan.bytes;
  report.seconds = watch.seconds();
  return report;
}

}  // namespace nibble
