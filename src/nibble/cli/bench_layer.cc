#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "nibble/base/log.h"
#include "nibble/cli/bench_kinds.h"
#include "nibble/engine/bench/layer_bench.h"
#include "nibble/hardware/machine_info.h"

namespace nibble {
namespace {

// Of one shape and format.
std::vector<BenchRow> measure(const BenchSettings& settings, const std::string& shape, const LayerBenchRequest& request,
                              const std::vector<uint64_t>& contexts, const CommonOptions& common, ThreadPool* pool) {
  const auto tell = [&](const std::string& what) {
    if (!common.quiet) log::info(fmt::format("{}, {}: {}", shape, request.format, what));
  };
  tell("making weights");
  LayerBench bench(request, pool);
  std::optional<double> error;
  if (settings.check) error = bench.check();
  std::vector<BenchRow> rows;
  const auto add = [&](uint64_t tokens, uint64_t context) {
    tell(fmt::format("{} tokens behind {}", tokens, context));
    BenchRow row = row_of(bench.measure(tokens, context));
    row.shape = shape;
    row.format = request.format;
    row.scheme = settings.scheme;
    row.kernel = bench.kernels();
    row.check_error = error;
    rows.push_back(std::move(row));
  };
  const std::vector<uint64_t> counts = settings.tokens.empty() ? std::vector<uint64_t>{1, 512} : settings.tokens;
  for (const uint64_t tokens : counts) {
    if (tokens > 1) add(tokens, 0);
    if (tokens > 1) continue;
    for (const uint64_t context : contexts) add(1, context);
  }
  return rows;
}

}  // namespace

int run_bench_layer(const BenchSettings& settings, const std::vector<uint64_t>& contexts, const CommonOptions& common) {
  ThreadPool pool(common.thread_count());
  LayerBenchRequest request;
  request.arithmetic = settings.arithmetic();
  request.seconds = settings.seconds;
  const std::vector<std::string> usual = {"gpt-oss-20b", "qwen3-30b-a3b"};
  const BenchCeilings ceilings(settings, common);
  std::vector<BenchRow> rows;
  for (const std::string& shape : settings.shapes.empty() ? usual : settings.shapes) {
    request.model = bundled_shape(shape);
    for (const std::string& format : settings.wanted_formats()) {
      request.format = format;
      request.available = machine_info().available_bytes;
      for (BenchRow& row : measure(settings, shape, request, contexts, common, &pool)) rows.push_back(std::move(row));
    }
  }
  const Device machine = ceilings.best();
  common.json ? print_json(Json{{"rows", rows_json(rows, machine)}, {"machine", device_json(machine)}})
              : print_out(passes_text(rows, machine));
  return judge(rows, machine);
}

}  // namespace nibble
