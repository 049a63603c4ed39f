#include "nibble/cli/bench_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "nibble/base/log.h"
#include "nibble/base/strings.h"
#include "nibble/base/table.h"
#include "nibble/engine/bench/floor.h"
#include "nibble/engine/scheme.h"
#include "nibble/hardware/calibrate.h"
#include "nibble/numerics/published_formats.h"

namespace nibble {
namespace {

// Ceilings are measured as long as so many rows, but no longer than they need.
constexpr double kCeilingRows = 3, kCeilingSeconds = 1.5;
// Above this the accounting is wrong, not the kernel quick.
constexpr double kMostPercent = 105;

Json row_json(const BenchRow& row, const Device& machine) {
  const OpWork work = sum_of(row.steps);
  const Floor floor = floor_of(row.steps, machine);
  Json json{{"op", row.op},
            {"shape", row.shape},
            {"format", row.format},
            {"scheme", row.scheme},
            {"tokens", row.tokens},
            {"us", row.seconds * 1e6},
            {"runs", row.runs},
            {"bytes", work.bytes},
            {"flops", work.flops()},
            {"gb_per_s", work.bytes / row.seconds / 1e9},
            {"tflops", work.flops() / row.seconds / 1e12},
            {"floor_us", floor.seconds * 1e6},
            {"percent_of_floor", percent_of_floor(row, machine)},
            {"ceiling", floor.ceiling},
            {"check_error", row.check_error ? Json(*row.check_error) : Json(nullptr)},
            {"kernel", row.kernel}};
  if (row.context) {
    json["context"] = *row.context;
    json["tokens_per_s"] = static_cast<double>(row.tokens) / row.seconds;
  }
  return json;
}

}  // namespace

std::vector<std::string> BenchSettings::wanted_formats() const {
  if (!formats.empty()) return formats;
  std::vector<std::string> names;
  for (const std::string_view name : published_formats()) {
    if (parse_format(name).code_bits() == 4) names.emplace_back(name);
  }
  return names;
}

Arithmetics BenchSettings::arithmetic() const {
  Arithmetics how = arithmetics_of_scheme(scheme);
  how.kernel = kernel;
  return how;
}

BenchRow row_of(const PassRow& pass) {
  BenchRow row;
  row.op = pass.op;
  row.tokens = pass.tokens;
  row.runs = pass.runs;
  row.seconds = pass.seconds;
  row.steps = pass.steps;
  row.context = pass.context;
  return row;
}

BenchCeilings::BenchCeilings(const BenchSettings& settings, const CommonOptions& common)
    : seconds_(std::min(kCeilingSeconds, kCeilingRows * settings.seconds)),
      threads_(common.thread_count()),
      before_(measure()) {}

Device BenchCeilings::measure() const {
  CalibrateOptions options;
  options.seconds = seconds_;
  options.threads = threads_;
  return calibrate(options, [](std::string_view) {});
}

Device BenchCeilings::best() const {
  const Device after = measure();
  Device best = before_;
  best.memory_bandwidth = std::max(best.memory_bandwidth, after.memory_bandwidth);
  best.f32_flops = std::max(best.f32_flops, after.f32_flops);
  best.int8_flops = std::max(best.int8_flops, after.int8_flops);
  return best;
}

double percent_of_floor(const BenchRow& row, const Device& machine) {
  return 100 * floor_of(row.steps, machine).seconds / row.seconds;
}

Json rows_json(const std::vector<BenchRow>& rows, const Device& machine) {
  Json all = Json::array();
  for (const BenchRow& row : rows) all.push_back(row_json(row, machine));
  return all;
}

std::string ceilings_text(const Device& machine) {
  return fmt::format("ceilings of this run: memory {}/s, int8 {:.0f} GOP/s, float32 {:.0f} GFLOP/s\n",
                     human_bytes(static_cast<uint64_t>(machine.memory_bandwidth)), machine.int8_flops / 1e9,
                     machine.f32_flops / 1e9);
}

std::string error_cell(const std::optional<double>& error) {
  if (!error) return "-";
  return *error == 0 ? "none" : fmt::format("{:.1e}", *error);
}

std::string passes_text(const std::vector<BenchRow>& rows, const Device& machine) {
  std::vector<std::vector<std::string>> cells{{"pass", "shape", "format", "tokens", "context", "tokens/s", "ms", "GB/s",
                                               "GOP/s", "% of floor", "bound by", "error"}};
  for (const BenchRow& row : rows) {
    if (!row.context) continue;
    const OpWork work = sum_of(row.steps);
    cells.push_back({row.op, row.shape, row.format, std::to_string(row.tokens), std::to_string(*row.context),
                     fmt::format("{:.2f}", static_cast<double>(row.tokens) / row.seconds),
                     fmt::format("{:.2f}", row.seconds * 1e3), fmt::format("{:.2f}", work.bytes / row.seconds / 1e9),
                     fmt::format("{:.1f}", work.flops() / row.seconds / 1e9),
                     fmt::format("{:.1f}", percent_of_floor(row, machine)),
                     std::string(floor_of(row.steps, machine).ceiling), error_cell(row.check_error)});
  }
  return table_text(cells) + "\n" + ceilings_text(machine);
}

int judge(const std::vector<BenchRow>& rows, const Device& machine) {
  bool good = true;
  for (const BenchRow& row : rows) {
    good = good && row.check_error.value_or(0) == 0;
    if (percent_of_floor(row, machine) <= kMostPercent) continue;
    log::warning(
        fmt::format("{} of {}, {}: above its floor. The machine was slower while its ceilings were measured, or "
                    "caches answered instead of the memory",
                    row.op, row.shape, row.format));
  }
  return good ? kExitDone : kExitRefused;
}

}  // namespace nibble
