#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "nibble/base/error.h"
#include "nibble/base/file.h"
#include "nibble/base/log.h"
#include "nibble/base/strings.h"
#include "nibble/base/table.h"
#include "nibble/cli/bench_kinds.h"
#include "nibble/cli/bench_perplexity.h"
#include "nibble/cli/commands.h"
#include "nibble/engine/scheme.h"
#include "nibble/hardware/calibrate.h"

namespace nibble {
namespace {

constexpr const char* kCeilingsFile = "nibble-machine.json";

struct BenchArgs {
  bool calibrate = false, tune = false;
  double seconds = 10;
  std::string out, folder = ".", what;
  BenchSettings settings;
  BenchModelArgs model;
  BenchPerplexityArgs perplexity;
};

std::string range_cell(const std::optional<MeasuredRange>& range, const char* unit) {
  if (!range) return "-";
  return fmt::format("{} to {}{}", human_bytes(static_cast<uint64_t>(range->low)),
                     human_bytes(static_cast<uint64_t>(range->high)), unit);
}

std::string flops_cell(const std::optional<MeasuredRange>& range) {
  if (!range) return "-";
  return fmt::format("{:.1f} to {:.1f} GFLOP/s", range->low / 1e9, range->high / 1e9);
}

std::string calibration_text(const Device& device, const std::string& file) {
  const auto source = [&](const char* key) {
    const auto found = device.sources.find(key);
    return found == device.sources.end() ? std::string() : found->second;
  };
  std::string text = fmt::format("{}, {} of memory\n", printable(device.title), human_bytes(device.memory_bytes));
  text += table_text({{"ceiling", "measured", "how"},
                      {"memory, reading", range_cell(device.measured_read, "/s"), source("measured_read")},
                      {"disk, reading", range_cell(device.measured_disk_read, "/s"), source("measured_disk_read")},
                      {"float32", flops_cell(device.measured_f32), source("measured_f32")},
                      {"bfloat16", flops_cell(device.measured_bf16), source("measured_bf16")},
                      {"int8", flops_cell(device.measured_int8), source("measured_int8")}});
  return text + fmt::format("written to {}; nibble plan MODEL --gpu {} uses it\n", printable(file), printable(file));
}

int run_calibrate(const BenchArgs& args, const CommonOptions& common) {
  CalibrateOptions options;
  options.seconds = args.seconds;
  options.folder = args.folder;
  options.threads = common.thread_count();
  const Device device = calibrate(options, [&](std::string_view doing) {
    if (!common.quiet) log::info(std::string(doing));
  });
  const Json json = device_json(device);
  const std::string file = args.out.empty() ? kCeilingsFile : args.out;
  write_atomically(file, json_text(json));
  if (common.json) {
    print_json(Json{{"rows", Json::array()}, {"machine", json}, {"file", file}});
  } else {
    print_out(calibration_text(device, file));
  }
  return kExitDone;
}

int run_perplexity(BenchPerplexityArgs args, const std::vector<uint64_t>& contexts, const CommonOptions& common) {
  if (contexts.size() > 1 || (contexts.size() == 1 && contexts[0] < 2)) {
    throw UsageError(Error("--perplexity scores windows of one length, 2 tokens or more").way_out("--context 512"));
  }
  if (!contexts.empty()) args.context = contexts[0];
  return run_bench_perplexity(args, common);
}

int run_bench(BenchArgs args, const CommonOptions& common) {
  if (args.calibrate && args.tune)
    throw UsageError(Error("--calibrate and --tune write a file each").way_out("one after the other"));
  if (args.calibrate) return run_calibrate(args, common);
  if (args.tune) return run_bench_tune(args.settings, args.out, common);
  if (!args.perplexity.file.empty()) {
    args.perplexity.model = args.model.model;
    return run_perplexity(args.perplexity, args.model.contexts, common);
  }
  if (args.model.contexts.empty()) args.model.contexts = {0};
  if (args.what == "op") return run_bench_op(args.settings, common);
  if (args.what == "layer") return run_bench_layer(args.settings, args.model.contexts, common);
  if (args.what == "model") return run_bench_model(args.settings, args.model, common);
  throw UsageError(Error("nothing to measure")
                       .way_out("nibble bench op")
                       .way_out("nibble bench layer")
                       .way_out("nibble bench model --model MODEL")
                       .way_out("nibble bench --calibrate")
                       .way_out("nibble bench --tune"));
}

void add_calibration(CLI::App& app, BenchArgs* args) {
  app.add_flag("--calibrate", args->calibrate, "measure what this machine's memory, disk and arithmetic reach");
  app.add_flag(
      "--tune", args->tune,
      "find the quickest kernel for each format and number of tokens; this machine's kernels are chosen by it");
  app.add_option("--out", args->out,
                 fmt::format("the file for the ceilings, in the form of the device catalog (default {}), or for the "
                             "table of kernels (default: nibble's in the user's cache, or NIBBLE_TUNING)",
                             kCeilingsFile))
      ->type_name("FILE");
  app.add_option("--folder", args->folder, "the folder whose disk is measured")
      ->capture_default_str()
      ->type_name("DIR");
  app.add_option("--seconds", args->seconds, "about how long it may take")
      ->check(CLI::Range(0.1, 600.0))
      ->capture_default_str()
      ->type_name("S");
}

void add_settings(CLI::App& app, BenchSettings* settings) {
  app.add_option(
         "--shape", settings->shapes,
         "op: a model's products, or one of them (gpt-oss-20b, gpt-oss-20b/experts.down); layer: a bundled model")
      ->type_name("NAME");
  app.add_option("--format", settings->formats, "op, layer: formats of the weights (layer: of the routed experts)")
      ->type_name("F");
  app.add_option("--tokens", settings->tokens,
                 "tokens of a run (default: op 1; layer 1 and 512; model 512); layer: 1 decodes behind each context")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 20))
      ->type_name("N");
  app.add_option("--scheme", settings->scheme, engine_schemes_help())
      ->check(CLI::IsMember(engine_scheme_names()))
      ->capture_default_str();
  app.add_option("--kernel", settings->kernel, "only kernels of this name")->type_name("NAME");
  app.add_option("--row-seconds", settings->seconds, "about how long a row is measured; a prompt once at least")
      ->check(CLI::Range(0.01, 60.0))
      ->capture_default_str();
  app.add_flag("--check,!--no-check", settings->check, "compare with the reference kernels first (the default)");
}

void add_perplexity(CLI::App& app, BenchPerplexityArgs* args) {
  app.add_option(
         "--perplexity", args->file,
         "how well --model foretells this text; a .jsonl file holds token ids, a list a line, each scored whole")
      ->type_name("FILE");
  app.add_option("--per-token", args->per_token,
                 "where --perplexity writes, a line of JSON a token, its logit and the two largest")
      ->type_name("OUT.jsonl");
  app.add_flag("--stream", args->stream,
               "--perplexity reads the model layer by layer: memory for one layer and the tokens' states");
  std::vector<std::string> caches = cache_type_names();
  caches.emplace_back("f32");
  app.add_option("--kv", args->kv, "type of keys and values that --perplexity caches")
      ->check(CLI::IsMember(caches))
      ->capture_default_str();
}

}  // namespace

std::function<int()> setup_bench(CLI::App& app, CommonOptions& common) {
  auto args = std::make_shared<BenchArgs>();
  app.add_option("what", args->what,
                 "op: matrix products of real models' shapes; layer: attention and experts of one layer, with random "
                 "weights; model: a checkpoint, held in memory")
      ->check(CLI::IsMember({"op", "layer", "model"}));
  add_settings(app, &args->settings);
  app.add_option("--model", args->model.model, "a checkpoint folder or file, for model and --perplexity")
      ->type_name("MODEL");
  app.add_option("--context", args->model.contexts,
                 "layer, model: tokens in the cache before those that are decoded (default 0), of random keys and "
                 "values; --perplexity: tokens of a window (default 512)")
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 20))
      ->type_name("C");
  app.add_option("--decode", args->model.decode, "model: tokens that are decoded behind each context")
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 20))
      ->capture_default_str()
      ->type_name("N");
  add_perplexity(app, &args->perplexity);
  add_calibration(app, args.get());
  app.footer(
      "Examples:\n  nibble bench --tune\n  nibble bench --calibrate --out here.json && nibble plan gpt-oss-20b --gpu "
      "here.json\n"
      "  nibble bench model --model ./gpt-oss-20b --tokens 512 2048 --context 0 2048 8192");
  return [args, &common, scheme = app.get_option("--scheme")] {
    // Speed is measured with the quick arithmetic, text with the exact one, unless the user says otherwise.
    if (scheme->count() > 0) args->perplexity.scheme = args->settings.scheme;
    return run_bench(*args, common);
  };
}

}  // namespace nibble
