#include "nibble/verify/verify.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "nibble/base/error.h"
#include "nibble/base/log.h"
#include "nibble/base/strings.h"
#include "nibble/base/table.h"
#include "nibble/checkpoint/checkpoint.h"
#include "nibble/cli/commands.h"

namespace nibble {
namespace {

struct VerifyArgs {
  std::string path, against;
  VerifyOptions options;
  bool reindex = false;
};

Json report_json(const VerifyReport& report) {
  Json json{{"ok", report.ok}, {"findings", Json::array()}};
  for (const Finding& finding : report.findings) {
    Json values = Json::object();
    for (const auto& [key, text] : finding.values) values[key] = text;
    json["findings"].push_back(Json{{"severity", severity_name(finding.severity)},
                                    {"rule", finding.rule},
                                    {"file", finding.file},
                                    {"tensor", finding.tensor},
                                    {"message", finding.message},
                                    {"values", std::move(values)}});
  }
  if (!report.against.empty()) {
    json["against"] = Json::array();
    for (const AgainstRow& row : report.against)
      json["against"].push_back(Json{{"name", row.name},
                                     {"format", row.format},
                                     {"rel_rmse", row.rel_rmse},
                                     {"snr_db", row.snr_db},
                                     {"expected_rel_rmse", row.expected_rel_rmse}});
  }
  if (report.rederived)
    json["rederived"] = Json{{"tensors", report.rederived->tensors},
                             {"bytes", report.rederived->bytes},
                             {"differing", report.rederived->differing},
                             {"differing_bytes", report.rederived->differing_bytes},
                             {"seconds", report.rederived->seconds}};
  json["checked"] = Json{{"tensors", report.tensors}, {"bytes", report.bytes}, {"seconds", report.seconds}};
  return json;
}

std::string finding_line(const Finding& finding) {
  std::string line = fmt::format("{}: {}", severity_name(finding.severity), finding.rule);
  if (!finding.file.empty()) line += fmt::format(": {}", printable(finding.file));
  if (!finding.tensor.empty()) line += fmt::format(": {}", printable(finding.tensor));
  line += fmt::format(": {}", printable(finding.message));
  std::string values;
  for (const auto& [key, text] : finding.values)
    values += fmt::format("{}{} {}", values.empty() ? "" : ", ", key, printable(text));
  return values.empty() ? line + "\n" : fmt::format("{} ({})\n", line, values);
}

std::string rederived_line(const Rederived& rederived) {
  std::string line = fmt::format("rederived: {} tensors, {} in {:.2f} s, ", with_commas(rederived.tensors),
                                 human_bytes(rederived.bytes), rederived.seconds);
  if (rederived.differing == 0) return line + "all bytes equal\n";
  return line + fmt::format("{} tensors and files differ, in {} bytes\n", with_commas(rederived.differing),
                            with_commas(rederived.differing_bytes));
}

std::string report_text(const std::string& path, const VerifyReport& report) {
  std::string text;
  size_t errors = 0;
  size_t warnings = 0;
  for (const Finding& finding : report.findings) {
    text += finding_line(finding);
    errors += finding.severity == Severity::kError ? 1u : 0u;
    warnings += finding.severity == Severity::kWarning ? 1u : 0u;
  }
  if (!report.against.empty()) {
    auto worst = report.against;
    std::stable_sort(worst.begin(), worst.end(), [](const AgainstRow& a, const AgainstRow& b) {
      return a.rel_rmse * b.expected_rel_rmse > b.rel_rmse * a.expected_rel_rmse;
    });
    if (worst.size() > 10) worst.resize(10);
    std::vector<std::vector<std::string>> rows{
        {"largest error against expectation", "format", "rel. error", "expected", "SNR dB"}};
    for (const AgainstRow& row : worst)
      rows.push_back({printable(row.name), row.format, fmt::format("{:.5f}", row.rel_rmse),
                      fmt::format("{:.5f}", row.expected_rel_rmse), fmt::format("{:.2f}", row.snr_db)});
    text += table_text(rows);
  }
  if (report.rederived) text += rederived_line(*report.rederived);
  const double rate = report.seconds > 0 ? static_cast<double>(report.bytes) / report.seconds : 0;
  return text + fmt::format("{}: {} ({} error{}, {} warning{}); {} tensors, {} in {:.2f} s, {}/s\n", printable(path),
                            report.ok ? "ok" : "NOT ok", errors, errors == 1 ? "" : "s", warnings,
                            warnings == 1 ? "" : "s", with_commas(report.tensors), human_bytes(report.bytes),
                            report.seconds, human_bytes(static_cast<uint64_t>(rate)));
}

int run_verify(VerifyArgs& args, const CommonOptions& common) {
  // No manifest records where the source lies: its bytes depend on no path.
  if (args.options.rederive && args.against.empty())
    throw UsageError(
        Error("--rederive needs the checkpoint that was quantized").file(args.path).way_out("add --against BASE"));
  if (args.reindex) {
    Findings findings;
    rebuild_index(args.path, &findings);
    throw_first_error(findings);
    log::info("the index was rebuilt from the shards");
  }
  if (!args.against.empty()) args.options.against = args.against;
  args.options.threads = common.thread_count();
  args.options.quiet = common.quiet;
  const VerifyReport report = verify(args.path, args.options);
  if (common.json) {
    print_json(report_json(report));
  } else {
    print_out(report_text(args.path, report));
  }
  return report.ok ? kExitDone : kExitRefused;
}

}  // namespace

std::function<int()> setup_verify(CLI::App& app, CommonOptions& common) {
  auto args = std::make_shared<VerifyArgs>();
  app.add_option("path", args->path, "a checkpoint folder, a .safetensors or a .gguf file")
      ->required()
      ->type_name("PATH");
  app.add_option("--against", args->against, "compare every weight with the checkpoint that this one was made from")
      ->type_name("BASE");
  app.add_flag("--rederive", args->options.rederive,
               "quantize again from BASE (give --against) as nibble.json records it, and compare every byte");
  app.add_flag("--quick", args->options.quick, "headers, scales and a sample instead of every byte");
  app.add_option("--tp", args->options.tp, "check that tensor parallelism over N ranks cuts no group")
      ->check(CLI::Range(uint64_t{1}, uint64_t{65536}))
      ->type_name("N");
  app.add_option("--ep", args->options.ep, "check that expert parallelism over N ranks is possible")
      ->check(CLI::Range(uint64_t{1}, uint64_t{65536}))
      ->type_name("N");
  app.add_flag("--allow-trailing", args->options.allow_trailing, "tolerate bytes after the last tensor of a file");
  app.add_flag("--reindex", args->reindex,
               "first rebuild model.safetensors.index.json from the shards, if every tensor occurs once");
  app.footer("Example:\n  nibble verify ./Qwen3-30B-A3B-4bit --against ./Qwen3-30B-A3B --tp 2");
  return [args, &common] { return run_verify(*args, common); };
}

}  // namespace nibble
