#include "nibble/quantize/quantize.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <csignal>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>

#include "nibble/base/error.h"
#include "nibble/base/log.h"
#include "nibble/base/strings.h"
#include "nibble/base/table.h"
#include "nibble/checkpoint/convention.h"
#include "nibble/cli/commands.h"
#include "nibble/models/role.h"
#include "nibble/numerics/quantizer.h"
#include "nibble/quantize/policy.h"

namespace nibble {
namespace {

struct QuantizeArgs {
  std::string source, target, format, rule, layout, bit_exact, shard_size = "5GB", worker;
  std::vector<std::string> include, keep, generic;
  bool unify = false, sha256 = false, dry_run = false, resume = false, restart = false, allow_trailing = false;
};

std::string format_help() {
  std::vector<std::string> patterns;
  for (const FormatFamily* family : format_families()) {
    if (family->writable) patterns.emplace_back(family->pattern);
  }
  return fmt::format("one of {}", fmt::join(patterns, ", "));
}

// One whose pattern is a name as it stands, so that the example can be typed.
std::string_view example_format() {
  for (const FormatFamily* family : format_families()) {
    if (family->writable && family->parse(family->pattern)) return family->pattern;
  }
  return "F";
}

std::string rule_help() {
  const auto formats = example_writable_formats();
  std::vector<std::string> names;
  for (const ScaleRule* rule : scale_rules()) {
    if (std::ranges::any_of(formats, [rule](const Format& format) { return rule->applies(format); }))
      names.emplace_back(rule->name);
  }
  return fmt::format("how scales are chosen: {}; with the prefix mse. they are searched (default: the format's own)",
                     fmt::join(names, " "));
}

std::string role_help() {
  std::vector<std::string_view> names;
  for (const Role role : all_roles()) names.push_back(role_name(role));
  return fmt::format("{}", fmt::join(names, " "));
}

// "I/N" with 1 <= I <= N.
std::pair<uint32_t, uint32_t> parse_worker(const std::string& text) {
  const auto parts = split(text, '/');
  uint32_t i = 0;
  uint32_t n = 0;
  const auto number = [](std::string_view part, uint32_t* out) {
    const auto [end, code] = std::from_chars(part.data(), part.data() + part.size(), *out);
    return code == std::errc() && end == part.data() + part.size();
  };
  if (parts.size() != 2 || !number(parts[0], &i) || !number(parts[1], &n) || i < 1 || i > n) {
    throw Error("--worker takes I/N with 1 <= I <= N").value("worker", text).way_out("write for example --worker 2/8");
  }
  return {i, n};
}

// A library's bytes come by its own rule; a rule that was given stands, and is judged where it is used.
NamedRule rule_of(const std::string& given, const QuantizeRequest& request) {
  if (request.rule_given) return parse_rule(given, request.format);
  const std::string_view library = bit_exact_rule(request.bit_exact, request.format);
  return library.empty() ? default_rule(request.format) : parse_rule(library, request.format);
}

// A library has one rule for a format and one way to hold a second level: with other options no checkpoint could come
// out right. Error if so.
void check_bit_exact(const QuantizeRequest& request) {
  if (request.format.is_dense() || request.bit_exact == BitExact::kNone) return;
  SecondLevel level = SecondLevel::kNone;
  if (request.format.two_level && !request.layout.empty())
    level = parse_layout(request.layout, request.format).second_level();
  check_can_round(request, request.format, level);
}

QuantizeRequest request_of(const QuantizeArgs& args, const CommonOptions& common) {
  QuantizeRequest request;
  if (args.target.empty()) throw Error("the target has no name").way_out("name the folder to be made");
  request.source = args.source;
  request.target = args.target;
  request.format = parse_writable_format(args.format);
  if (args.bit_exact == library_name(BitExact::kCompressedTensors)) request.bit_exact = BitExact::kCompressedTensors;
  if (args.bit_exact == library_name(BitExact::kModelOpt)) request.bit_exact = BitExact::kModelOpt;
  request.rule_given = !args.rule.empty();
  if (request.format.is_dense() && request.rule_given)
    throw Error("a 16-bit target has no scale rule").value("rule", args.rule).way_out("leave --rule out");
  if (!request.format.is_dense()) request.rule = rule_of(args.rule, request);
  request.layout = args.layout;
  if (request.format.is_dense() && !(args.layout.empty() && args.bit_exact.empty()))
    throw Error("a format without scales has no layout and no library whose bytes it could have")
        .value("format", request.format.name)
        .way_out("leave --layout and --bit-exact-with out");
  if (!args.layout.empty()) parse_layout(args.layout, request.format);
  check_bit_exact(request);
  request.include = args.include;
  request.keep = args.keep;
  request.generic = args.generic;
  check_words(request);
  request.unify_scales = args.unify;
  request.shard_bytes = parse_bytes(args.shard_size);
  if (!args.worker.empty() && args.restart)
    throw Error("--restart removes what the other workers have made, so it cannot go with --worker")
        .way_out("remove the target folder once, then start the workers")
        .way_out("run once with --restart and without --worker");
  if (!args.worker.empty()) std::tie(request.worker, request.workers) = parse_worker(args.worker);
  request.sha256_inputs = args.sha256;
  request.dry_run = args.dry_run;
  request.restart = args.restart;
  request.allow_trailing = args.allow_trailing;
  request.threads = common.thread_count();
  request.quiet = common.quiet;
  return request;
}

Json row_json(const QuantizeRow& row) {
  Json json{
      {"name", row.name}, {"role", row.role}, {"action", row.action}, {"reason", row.reason}, {"format", row.format}};
  json["rel_rmse"] = row.rel_rmse < 0 ? Json() : Json(row.rel_rmse);
  json["snr_db"] = row.rel_rmse < 0 || row.lossless ? Json() : Json(row.snr_db);
  if (!row.note.empty()) json["note"] = row.note;
  if (row.scale_changes) add_scale_changes(*row.scale_changes, &json);
  return json;
}

// The members before and after the rows.
Json result_head(const QuantizeResult& result) {
  return {{"family", result.family}, {"format", result.format}, {"rule", result.rule}, {"layout", result.layout}};
}

Json result_tail(const QuantizeResult& result) {
  Json json;
  json["notes"] = result.notes;
  json["bytes_in"] = result.bytes_in;
  json["bytes_out"] = result.bytes_out;
  json["seconds"] = result.seconds;
  json["peak_rss_bytes"] = result.peak_rss_bytes;
  json["buffer_bytes"] = result.buffer_bytes;
  json["input_gb_per_s"] = result.input_gb_per_s;
  json["finished"] = result.finished;
  json["shards_left"] = result.shards_left;
  json["dry_run"] = result.dry_run;
  return json;
}

// "\n  member: value,\n …" of an object, at the depth of `indent` spaces.
std::string members_text(const Json& object, std::string_view indent) {
  const std::string text = strict_json_text(object);  // "{…\n}\n"
  std::string members;
  for (const char c : std::string_view(text).substr(1, text.size() - 4)) {
    members += c;
    if (c == '\n') members += indent;
  }
  return members;
}

// One JSON object, row by row: as one value the rows of a large model take more memory than all that came before.
void print_result(const QuantizeResult& result) {
  constexpr size_t kPrintBytes = size_t{1} << 20;
  std::string text = "{" + members_text(result_head(result), "") + ",\n  \"tensors\": [";
  std::string_view separator = "\n    ";
  for (const QuantizeRow& row : result.tensors) {
    text += fmt::format("{}{{{}\n    }}", separator, members_text(row_json(row), "    "));
    separator = ",\n    ";
    if (text.size() < kPrintBytes) continue;
    print_out(text);
    text.clear();
  }
  text += result.tensors.empty() ? "]," : "\n  ],";
  print_out(text + members_text(result_tail(result), "") + "\n}\n");
}

std::string dry_run_text(const QuantizeResult& result) {
  std::vector<std::vector<std::string>> rows{{"action", "format", "role", "tensor", "reason"}};
  for (const QuantizeRow& row : result.tensors)
    rows.push_back({row.action, row.format, row.role, printable(row.name), row.reason});
  return table_text(rows) + fmt::format("\n{} in, {} out; nothing was written (--dry-run)\n",
                                        human_bytes(result.bytes_in), human_bytes(result.bytes_out));
}

// Gate and up (q, k and v) after --unify-scales: how much was changed, and where most.
std::string scale_changes_text(const QuantizeResult& result) {
  uint64_t weights = 0, changed = 0, second = 0;
  const QuantizeRow* worst = nullptr;
  for (const QuantizeRow& row : result.tensors) {
    if (!row.scale_changes) continue;
    ++weights;
    changed += row.scale_changes->changed();
    second += row.scale_changes->second_scales.size();
    if (worst == nullptr || row.scale_changes->largest_relative_change > worst->scale_changes->largest_relative_change)
      worst = &row;
  }
  if (worst == nullptr) return "";
  std::string text = fmt::format("second-level scales unified: {} changed in {} weights, and {} block scales with them",
                                 with_commas(second), with_commas(weights), with_commas(changed));
  if (second > 0)
    text += fmt::format("; rounding moved a block's scale by {:.2f}% at most ({}). nibble.json lists every change",
                        100 * worst->scale_changes->largest_relative_change, printable(worst->name));
  return text + "\n";
}

std::string result_text(const QuantizeResult& result) {
  struct Sum {
    uint64_t count = 0, rounded = 0;
    double rmse = 0, worst = 0;
    std::string worst_name;
  };
  std::map<std::tuple<std::string, std::string, std::string>, Sum> sums;
  for (const QuantizeRow& row : result.tensors) {
    Sum& sum = sums[{row.action, row.format, row.role}];
    ++sum.count;
    if (row.rel_rmse < 0) continue;
    ++sum.rounded;
    sum.rmse += row.rel_rmse;
    if (sum.worst_name.empty() || row.rel_rmse > sum.worst) {
      sum.worst = row.rel_rmse;
      sum.worst_name = row.name;
    }
  }
  std::vector<std::vector<std::string>> rows{
      {"action", "format", "role", "weights", "mean error", "worst error", "worst weight"}};
  for (const auto& [key, sum] : sums) {
    const bool rounded = sum.rounded > 0;
    rows.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), with_commas(sum.count),
                    rounded ? fmt::format("{:.4f}", sum.rmse / static_cast<double>(sum.rounded)) : "",
                    rounded ? fmt::format("{:.4f}", sum.worst) : "", printable(sum.worst_name)});
  }
  std::string text = table_text(rows);
  text += fmt::format("\n{}, {}, rule {}, layout {}\n", result.family, result.format,
                      result.rule.empty() ? "none" : result.rule, result.layout);
  text += fmt::format("{} in, {} out, {:.2f} s, {:.2f} GB/s of input, peak memory {} (buffers up to {})\n",
                      human_bytes(result.bytes_in), human_bytes(result.bytes_out), result.seconds,
                      result.input_gb_per_s, human_bytes(result.peak_rss_bytes), human_bytes(result.buffer_bytes));
  text += scale_changes_text(result);
  if (!result.finished)
    text += fmt::format("this worker is done; {} shard{} left to other workers\n", result.shards_left,
                        result.shards_left == 1 ? " is" : "s are");
  return text;
}

// Ctrl-C ends the program as it always does; the journal is safe at any moment.
extern "C" void say_how_to_go_on(int signal) {
  constexpr std::string_view kText = "\nnibble: interrupted; the same command again goes on where this one stopped\n";
  [[maybe_unused]] const auto ignored = ::write(STDERR_FILENO, kText.data(), kText.size());
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

int run_quantize(const QuantizeArgs& args, const CommonOptions& common) {
  QuantizeRequest request;
  try {
    request = request_of(args, common);
  } catch (const Error& error) {
    throw UsageError(error);
  }
  if (!request.dry_run) std::signal(SIGINT, say_how_to_go_on);
  const QuantizeResult result = quantize(request);
  if (common.json) {
    print_result(result);
  } else {
    print_out(result.dry_run ? dry_run_text(result) : result_text(result));
  }
  return kExitDone;
}

}  // namespace

std::function<int()> setup_quantize(CLI::App& app, CommonOptions& common) {
  auto args = std::make_shared<QuantizeArgs>();
  app.add_option("source", args->source, "a checkpoint folder, a .safetensors or a .gguf file")
      ->required()
      ->type_name("SRC");
  app.add_option("target", args->target, "the folder to be made")->required()->type_name("DST");
  app.add_option("--format", args->format, format_help())->required()->type_name("F");
  app.add_option("--rule", args->rule, rule_help())->type_name("NAME");
  app.add_option("--layout", args->layout,
                 "how it is stored: compressed-tensors, gpt-oss, modelopt, deepseek (default: the source's own for "
                 "that format, else compressed-tensors)")
      ->type_name("NAME");
  app.add_option(
         "--include", args->include,
         fmt::format("what is quantized, instead of the default (routed_expert, for a model without experts "
                     "dense_mlp): roles, all_linears, or name:GLOB over whole names (* ? [a-z] [!x]). Roles: {}",
                     role_help()))
      ->type_name("WHAT");
  app.add_option("--keep", args->keep, "what stays as it is, in the same words; wins over --include and the default")
      ->type_name("WHAT");
  app.add_option("--generic", args->generic,
                 "for an unknown family: quantize 2-D weights whose names this regular expression finds")
      ->type_name("REGEX");
  app.add_option("--bit-exact-with", args->bit_exact, "give exactly that library's bytes")
      ->check(CLI::IsMember({"compressed-tensors", "modelopt"}))
      ->type_name("LIBRARY");
  app.add_flag("--unify-scales", args->unify,
               "one second-level scale for gate and up (q, k, v) of an input that has several");
  app.add_option("--shard-size", args->shard_size, "largest output file, for example 5GB or 512MiB")
      ->type_name("SIZE")
      ->capture_default_str();
  app.add_option("--worker", args->worker,
                 "write every N-th shard only, counting from the I-th: several processes or machines share one folder")
      ->type_name("I/N")
      ->check([](const std::string& text) { return std::string(text.empty() ? "it takes I/N and got nothing" : ""); });
  app.add_flag("--sha256-inputs", args->sha256,
               "record the SHA-256 of every source file too (reads the source once more)");
  app.add_flag("--dry-run", args->dry_run, "print every tensor with the decision and its reason, write nothing");
  app.add_flag("--resume", args->resume, "go on where an interrupted run stopped (default)");
  app.add_flag("--restart", args->restart, "begin again, whatever an earlier run left")->excludes("--resume");
  app.add_flag("--allow-trailing", args->allow_trailing, "tolerate bytes after the last tensor of a source file");
  app.footer("Example:\n  nibble quantize ./Qwen3-30B-A3B ./Qwen3-30B-A3B-4bit --format " +
             std::string(example_format()));
  return [args, &common] { return run_quantize(*args, common); };
}

}  // namespace nibble
