#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "nibble/base/error.h"
#include "nibble/base/file.h"
#include "nibble/base/log.h"
#include "nibble/base/strings.h"
#include "nibble/base/table.h"
#include "nibble/cli/bench_op.h"
#include "nibble/cli/bench_perplexity.h"
#include "nibble/cli/commands.h"
#include "nibble/hardware/calibrate.h"

namespace nibble {
namespace {

struct BenchArgs {
  bool calibrate = false;
  double seconds = 10;
  std::string out = "nibble-machine.json", folder = ".", what;
  BenchOpArgs op;
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

int run_bench(const BenchArgs& args, const CommonOptions& common) {
  if (!args.calibrate) {
    if (args.what == "op") return run_bench_op(args.op, common);
    if (!args.perplexity.file.empty()) return run_bench_perplexity(args.perplexity, common);
    throw UsageError(Error("nothing to measure").way_out("nibble bench op").way_out("nibble bench --calibrate"));
  }
  CalibrateOptions options;
  options.seconds = args.seconds;
  options.folder = args.folder;
  options.threads = common.thread_count();
  const Device device = calibrate(options, [&](std::string_view doing) {
    if (!common.quiet) log::info(std::string(doing));
  });
  const Json json = device_json(device);
  write_atomically(args.out, json_text(json));
  if (common.json) {
    print_json(Json{{"rows", Json::array()}, {"machine", json}, {"file", args.out}});
  } else {
    print_out(calibration_text(device, args.out));
  }
  return kExitDone;
}

void add_perplexity(CLI::App& app, BenchPerplexityArgs* args) {
  app.add_option(
         "--perplexity", args->file,
         "how well --model foretells this text; a .jsonl file holds token ids, a list a line, each scored whole")
      ->type_name("FILE");
  app.add_option("--model", args->model, "a checkpoint folder or file")->type_name("MODEL");
  app.add_option("--context", args->context, "tokens of a window that --perplexity scores")
      ->check(CLI::Range(uint64_t{2}, uint64_t{1} << 20))
      ->capture_default_str()
      ->type_name("N");
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
  app.add_flag("--calibrate", args->calibrate, "measure what this machine's memory, disk and arithmetic reach");
  app.add_option("--out", args->out, "the file for the ceilings, in the form of the device catalog")
      ->default_val("nibble-machine.json")
      ->type_name("FILE");
  app.add_option("--folder", args->folder, "the folder whose disk is measured")
      ->capture_default_str()
      ->type_name("DIR");
  app.add_option("--seconds", args->seconds, "about how long it may take")
      ->check(CLI::Range(0.1, 600.0))
      ->capture_default_str()
      ->type_name("S");
  app.add_option("what", args->what, "op: matrix products of real models' shapes")->check(CLI::IsMember({"op"}));
  app.add_option("--shape", args->op.shapes,
                 "a model's products, or one of them: gpt-oss-20b, gpt-oss-20b/experts.down")
      ->type_name("NAME");
  app.add_option("--format", args->op.formats, "formats of the weights")->type_name("F");
  app.add_option("--tokens", args->op.tokens, "tokens of a run")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 20))
      ->type_name("N");
  app.add_option("--scheme", args->op.scheme, "w4a8: activations to INT8; w4a16: float32 activations")
      ->check(CLI::IsMember({"w4a8", "w4a16"}))
      ->capture_default_str();
  app.add_option("--kernel", args->op.kernel, "only kernels of this name")->type_name("NAME");
  app.add_option("--row-seconds", args->op.seconds, "about how long a row is measured")
      ->check(CLI::Range(0.01, 60.0))
      ->capture_default_str();
  app.add_flag("!--no-check", args->op.check, "leave out the comparison with the reference");
  add_perplexity(app, &args->perplexity);
  app.footer("Example:\n  nibble bench --calibrate --out here.json && nibble plan gpt-oss-20b --gpu here.json");
  return [args, &common, scheme = app.get_option("--scheme")] {
    // Speed is measured with the quick arithmetic, text with the exact one, unless the user says otherwise.
    if (scheme->count() > 0) args->perplexity.scheme = args->op.scheme;
    return run_bench(*args, common);
  };
}

}  // namespace nibble
