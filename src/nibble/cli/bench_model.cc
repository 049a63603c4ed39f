#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "nibble/base/error.h"
#include "nibble/base/log.h"
#include "nibble/base/peak_memory.h"
#include "nibble/base/stopwatch.h"
#include "nibble/base/strings.h"
#include "nibble/cli/bench_kinds.h"
#include "nibble/engine/bench/model_bench.h"
#include "nibble/engine/memory_check.h"
#include "nibble/engine/open_model.h"
#include "nibble/hardware/machine_info.h"
#include "nibble/ledger/kv_cache.h"
#include "nibble/ledger/weights.h"

namespace nibble {
namespace {

// What a model takes: as counted before it is read, and as it came out.
struct ModelSizes {
  std::string name;
  std::vector<std::pair<std::string, uint64_t>> formats;  // bytes in the files, most first
  uint64_t file_bytes = 0;
  uint64_t predicted_weights = 0, predicted_cache = 0;
  uint64_t weights = 0, peak = 0;
};

// The folder's or file's; "model.gguf" says less than the folder that it lies in.
std::string name_of(const std::string& path) {
  const Path whole = std::filesystem::absolute(path).lexically_normal();
  const Path plain = whole.has_filename() ? whole : whole.parent_path();
  std::string last = plain.filename().string();
  if (!ends_with(last, ".gguf") && !ends_with(last, ".safetensors")) return last;
  return plain.stem() == "model" ? plain.parent_path().filename().string() : plain.stem().string();
}

// Tokens of the longest sequence.
uint64_t most_tokens(const std::vector<uint64_t>& prompts, const BenchModelArgs& args) {
  uint64_t most = 1;
  for (const uint64_t prompt : prompts) most = std::max(most, prompt);
  for (const uint64_t context : args.contexts) most = std::max(most, context + args.decode + 1);
  return most;
}

ModelSizes sizes_of(const OpenedModel& opened, const std::string& path, uint64_t tokens) {
  ModelSizes sizes;
  sizes.name = name_of(path);
  std::map<std::string, uint64_t> bytes;
  for (const WeightItem& item : weigh_checkpoint(opened.checkpoint, opened.model)) {
    bytes[item.format.name] += item.bytes;
    sizes.file_bytes += item.bytes;
  }
  sizes.formats.assign(bytes.begin(), bytes.end());
  std::sort(sizes.formats.begin(), sizes.formats.end(),
            [](const auto& a, const auto& b) { return a.second > b.second; });
  sizes.predicted_weights = resident_bytes(opened.checkpoint, opened.model);
  sizes.predicted_cache = KvCache(opened.model.spec).bytes(tokens, cache_element_bytes(EngineOptions{}.cache));
  return sizes;
}

// Every stored byte is read once at least.
BenchRow load_row(const ModelSizes& sizes, double seconds) {
  BenchRow row;
  row.op = "load";
  row.seconds = seconds;
  row.steps = {OpWork{0, 0, static_cast<double>(sizes.file_bytes)}};
  return row;
}

std::vector<BenchRow> measure(Engine* engine, ThreadPool* pool, const BenchSettings& settings,
                              const std::vector<uint64_t>& prompts, const BenchModelArgs& args,
                              const CommonOptions& common) {
  const auto tell = [&](const std::string& what) {
    if (!common.quiet) log::info(what);
  };
  ModelBench bench(engine, pool, settings.seconds);
  std::optional<double> error;
  if (settings.check) {
    tell("check: a few tokens by the reference");
    error = bench.check();
  }
  std::set<std::string_view> kernels;
  engine->visit_matrices([&](const Linear& matrix) { kernels.insert(matrix.kernel_name()); });
  std::vector<BenchRow> rows;
  const auto add = [&](const PassRow& pass) {
    rows.push_back(row_of(pass));
    rows.back().check_error = error;
    rows.back().kernel = fmt::format("{}", fmt::join(kernels, ", "));
  };
  for (const uint64_t prompt : prompts) {
    tell(fmt::format("prefill: {} tokens", prompt));
    add(bench.prefill(prompt));
  }
  for (const uint64_t context : args.decode == 0 ? std::vector<uint64_t>{} : args.contexts) {
    tell(fmt::format("decode: {} tokens behind {}", args.decode, context));
    add(bench.decode(context, args.decode));
  }
  return rows;
}

Json sizes_json(const ModelSizes& sizes, double load_seconds) {
  Json formats = Json::array();
  for (const auto& [format, bytes] : sizes.formats) formats.push_back({{"format", format}, {"bytes", bytes}});
  return Json{{"name", sizes.name},
              {"formats", std::move(formats)},
              {"file_bytes", sizes.file_bytes},
              {"load_seconds", load_seconds},
              {"weight_bytes", sizes.weights},
              {"predicted_weight_bytes", sizes.predicted_weights},
              {"predicted_cache_bytes", sizes.predicted_cache},
              {"peak_rss_bytes", sizes.peak}};
}

std::string sizes_text(const ModelSizes& sizes, double load_seconds) {
  return fmt::format(
      "{} of weights read in {:.1f} s ({:.2f} GB/s); memory: {} of weights ({} predicted), {} predicted "
      "for keys and values, {} at the most\n",
      human_bytes(sizes.file_bytes), load_seconds, static_cast<double>(sizes.file_bytes) / load_seconds / 1e9,
      human_bytes(sizes.weights), human_bytes(sizes.predicted_weights), human_bytes(sizes.predicted_cache),
      human_bytes(sizes.peak));
}

}  // namespace

int run_bench_model(const BenchSettings& settings, const BenchModelArgs& args, const CommonOptions& common) {
  if (args.model.empty()) throw UsageError(Error("no model is named").way_out("nibble bench model --model MODEL"));
  const std::vector<uint64_t> prompts = settings.tokens.empty() ? std::vector<uint64_t>{512} : settings.tokens;
  const OpenedModel opened = open_model(args.model, common.thread_count());
  const uint64_t tokens = most_tokens(prompts, args);
  check_positions(opened.model.spec, tokens);
  ModelSizes sizes = sizes_of(opened, args.model, tokens);
  check_memory(args.model, sizes.predicted_weights + sizes.predicted_cache, machine_info().available_bytes);
  const BenchCeilings ceilings(settings, common);
  forget_peak_memory();  // that of the ceilings
  ThreadPool pool(common.thread_count());
  EngineOptions options;
  options.arithmetic = settings.arithmetic();
  if (!common.quiet) log::info(fmt::format("reading {}", human_bytes(sizes.file_bytes)));
  const Stopwatch watch;
  Engine engine(opened.checkpoint, opened.model, options, &pool);
  const double load_seconds = watch.seconds();
  sizes.weights = engine.weight_bytes();
  std::vector<BenchRow> rows = measure(&engine, &pool, settings, prompts, args, common);
  sizes.peak = peak_memory_bytes();
  rows.push_back(load_row(sizes, load_seconds));
  for (BenchRow& row : rows) {
    row.shape = sizes.name;
    row.scheme = settings.scheme;
    row.format = sizes.formats.front().first;
  }
  const Device machine = ceilings.best();
  common.json ? print_json(Json{{"rows", rows_json(rows, machine)},
                                {"model", sizes_json(sizes, load_seconds)},
                                {"machine", device_json(machine)}})
              : print_out(passes_text(rows, machine) + sizes_text(sizes, load_seconds));
  return judge(rows, machine);
}

}  // namespace nibble
