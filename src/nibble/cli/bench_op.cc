#include "nibble/cli/bench_kinds.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "nibble/base/log.h"
#include "nibble/base/table.h"
#include "nibble/engine/bench/floor.h"
#include "nibble/engine/bench/op_bench.h"

namespace nibble {
namespace {

std::vector<BenchShape> wanted_shapes(const BenchSettings& settings) {
  if (settings.shapes.empty()) return {bench_shapes().begin(), bench_shapes().end()};
  std::vector<BenchShape> shapes;
  shapes.reserve(settings.shapes.size());
  for (const std::string& name : settings.shapes) shapes.push_back(find_shape(name));
  return shapes;
}

BenchRow measure(const BenchShape& shape, const OpBenchRequest& request, const std::string& scheme, ThreadPool* pool) {
  const OpBenchRow result = run_op_bench(request, pool);
  BenchRow row;
  row.op = request.op.name;
  row.shape = shape.name + "/" + request.op.name;
  row.format = request.format;
  row.scheme = scheme;
  row.kernel = result.kernel;
  row.tokens = request.tokens;
  row.runs = result.runs;
  row.seconds = result.seconds;
  row.steps = {result.work};
  row.check_error = result.largest_error;
  return row;
}

std::string rows_text(const std::vector<BenchRow>& rows, const Device& machine) {
  std::vector<std::vector<std::string>> cells{
      {"product", "format", "tokens", "kernel", "us", "GB/s", "GOP/s", "% of floor", "bound by", "error"}};
  for (const BenchRow& row : rows) {
    const OpWork work = sum_of(row.steps);
    cells.push_back({row.shape, row.format, std::to_string(row.tokens), row.kernel,
                     fmt::format("{:.1f}", row.seconds * 1e6), fmt::format("{:.2f}", work.bytes / row.seconds / 1e9),
                     fmt::format("{:.1f}", work.flops() / row.seconds / 1e9),
                     fmt::format("{:.1f}", percent_of_floor(row, machine)),
                     std::string(floor_of(row.steps, machine).ceiling), error_cell(row.check_error)});
  }
  return table_text(cells) + "\n" + ceilings_text(machine);
}

}  // namespace

int run_bench_op(const BenchSettings& settings, const CommonOptions& common) {
  ThreadPool pool(common.thread_count());
  const std::vector<std::string> formats = settings.wanted_formats();
  const std::vector<uint64_t> tokens = settings.tokens.empty() ? std::vector<uint64_t>{1} : settings.tokens;
  const std::vector<BenchShape> shapes = wanted_shapes(settings);
  OpBenchRequest request;
  request.seconds = settings.seconds;
  request.check = settings.check;
  request.arithmetic = settings.arithmetic();
  const BenchCeilings ceilings(settings, common);
  std::vector<BenchRow> rows;
  for (const BenchShape& shape : shapes) {
    for (const ShapeOp& op : shape.ops) {
      for (const std::string& format : formats) {
        for (const uint64_t count : tokens) {
          request.op = op;
          request.format = format;
          request.tokens = count;
          if (!common.quiet) log::info(fmt::format("{}/{}, {}, {} tokens", shape.name, op.name, format, count));
          rows.push_back(measure(shape, request, settings.scheme, &pool));
        }
      }
    }
  }
  const Device machine = ceilings.best();
  common.json ? print_json(Json{{"rows", rows_json(rows, machine)}, {"machine", device_json(machine)}})
              : print_out(rows_text(rows, machine));
  return judge(rows, machine);
}

}  // namespace nibble
