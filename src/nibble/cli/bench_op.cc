#include "nibble/cli/bench_op.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "nibble/base/log.h"
#include "nibble/base/strings.h"
#include "nibble/base/table.h"
#include "nibble/engine/bench/op_bench.h"
#include "nibble/hardware/calibrate.h"
#include "nibble/numerics/published_formats.h"

namespace nibble {
namespace {

constexpr double kCeilingSeconds = 1.5;
// Above this the accounting is wrong, not the kernel quick.
constexpr double kMostPercent = 105;

struct Row {
  std::string shape, format;
  uint64_t tokens = 0;
  OpBenchRow result;
};

// The better of two measurements, before and after.
Device ceilings(const Device& before, const Device& after) {
  Device best = before;
  best.memory_bandwidth = std::max(before.memory_bandwidth, after.memory_bandwidth);
  best.f32_flops = std::max(before.f32_flops, after.f32_flops);
  best.int8_flops = std::max(before.int8_flops, after.int8_flops);
  return best;
}

Device measure(const CommonOptions& common) {
  CalibrateOptions options;
  options.seconds = kCeilingSeconds;
  options.threads = common.thread_count();
  return calibrate(options, [](std::string_view) {});
}

std::vector<std::string> four_bit_formats() {
  std::vector<std::string> names;
  for (const std::string_view name : published_formats()) {
    if (parse_format(name).code_bits() == 4) names.emplace_back(name);
  }
  return names;
}

std::vector<BenchShape> wanted_shapes(const BenchOpArgs& args) {
  if (args.shapes.empty()) return {bench_shapes().begin(), bench_shapes().end()};
  std::vector<BenchShape> shapes;
  shapes.reserve(args.shapes.size());
  for (const std::string& name : args.shapes) shapes.push_back(find_shape(name));
  return shapes;
}

double percent(const Row& row, const Device& machine) {
  return 100 * op_floor(row.result, machine).seconds / row.result.seconds;
}

Json rows_json(const BenchOpArgs& args, const std::vector<Row>& rows, const Device& machine) {
  Json all = Json::array();
  for (const Row& row : rows) {
    const OpBenchRow& r = row.result;
    Json one{{"op", row.shape.substr(row.shape.find('/') + 1)},
             {"shape", row.shape},
             {"format", row.format},
             {"scheme", args.scheme},
             {"tokens", row.tokens},
             {"us", r.seconds * 1e6},
             {"runs", r.runs},
             {"bytes", r.bytes},
             {"flops", r.flops},
             {"gb_per_s", r.bytes / r.seconds / 1e9},
             {"tflops", r.flops / r.seconds / 1e12},
             {"percent_of_floor", percent(row, machine)},
             {"ceiling", op_floor(r, machine).ceiling},
             {"kernel", r.kernel}};
    if (args.check) one["check_error"] = r.largest_error;
    all.push_back(std::move(one));
  }
  return all;
}

std::string rows_text(const std::vector<Row>& rows, const Device& machine) {
  std::vector<std::vector<std::string>> cells{
      {"product", "format", "tokens", "kernel", "us", "GB/s", "GOP/s", "% of floor", "bound by", "error"}};
  for (const Row& row : rows) {
    const OpBenchRow& r = row.result;
    cells.push_back({row.shape, row.format, std::to_string(row.tokens), r.kernel,
                     fmt::format("{:.1f}", r.seconds * 1e6), fmt::format("{:.2f}", r.bytes / r.seconds / 1e9),
                     fmt::format("{:.1f}", r.flops / r.seconds / 1e9), fmt::format("{:.1f}", percent(row, machine)),
                     std::string(op_floor(r, machine).ceiling),
                     r.largest_error == 0 ? "none" : fmt::format("{:.1e}", r.largest_error)});
  }
  return table_text(cells) +
         fmt::format("\nceilings of this run: memory {}/s, int8 {:.0f} GOP/s, float32 {:.0f} GFLOP/s\n",
                     human_bytes(static_cast<uint64_t>(machine.memory_bandwidth)), machine.int8_flops / 1e9,
                     machine.f32_flops / 1e9);
}

}  // namespace

int run_bench_op(const BenchOpArgs& args, const CommonOptions& common) {
  ThreadPool pool(common.thread_count());
  const std::vector<std::string> formats = args.formats.empty() ? four_bit_formats() : args.formats;
  const std::vector<uint64_t> tokens = args.tokens.empty() ? std::vector<uint64_t>{1} : args.tokens;
  const std::vector<BenchShape> shapes = wanted_shapes(args);
  OpBenchRequest request;
  request.seconds = args.seconds;
  request.arithmetic.kernel = args.kernel;
  request.arithmetic.integer_activations = args.scheme == "w4a8" ? ActivationKind::kInt8 : ActivationKind::kF32;
  const Device before = measure(common);
  std::vector<Row> rows;
  for (const BenchShape& shape : shapes) {
    for (const ShapeOp& op : shape.ops) {
      for (const std::string& format : formats) {
        for (const uint64_t count : tokens) {
          request.op = op;
          request.format = format;
          request.tokens = count;
          if (!common.quiet) log::info(fmt::format("{}/{}, {}, {} tokens", shape.name, op.name, format, count));
          rows.push_back({shape.name + "/" + op.name, format, count, run_op_bench(request, &pool)});
        }
      }
    }
  }
  const Device machine = ceilings(before, measure(common));
  common.json ? print_json(Json{{"rows", rows_json(args, rows, machine)}, {"machine", device_json(machine)}})
              : print_out(rows_text(rows, machine));
  bool good = true;
  for (const Row& row : rows) {
    good = good && row.result.largest_error == 0;
    if (percent(row, machine) > kMostPercent) {
      log::warning(fmt::format("{} {} is above its floor: the machine was slower while its ceilings were measured",
                               row.shape, row.format));
    }
  }
  return good ? kExitDone : kExitRefused;
}

}  // namespace nibble
