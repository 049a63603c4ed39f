#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "nibble/base/error.h"
#include "nibble/base/log.h"
#include "nibble/base/table.h"
#include "nibble/cli/bench_kinds.h"
#include "nibble/engine/bench/tune.h"
#include "nibble/hardware/machine_info.h"
#include "nibble/kernels/tuning.h"

namespace nibble {
namespace {

Path file_for(const std::string& named) {
  if (!named.empty()) return named;
  if (const auto file = tuning_file()) return *file;
  throw Error("there is no place for the table: NIBBLE_TUNING is \"none\", or neither HOME nor XDG_CACHE_HOME is set")
      .way_out("nibble bench --tune --out FILE, and NIBBLE_TUNING=FILE to use it");
}

// What other schemes and formats were measured for stays.
TuningTable earlier_table(const Path& file, const std::string& processor) {
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) return {};
  try {
    return TuningTable::parse(read_json(file), processor, file.string());
  } catch (const Error& error) {
    log::warning(std::string(error.what()) + "; it is written anew");
    return {};
  }
}

std::string tune_text(const TuneResult& result, const Path& file) {
  std::vector<std::vector<std::string>> cells{{"format", "tokens", "kernel", "us", ""}};
  for (const TuneRow& row : result.rows) {
    cells.push_back({row.format, std::to_string(row.tokens), row.kernel, fmt::format("{:.1f}", row.seconds * 1e6),
                     row.chosen ? "chosen" : ""});
  }
  return table_text(cells) + fmt::format("\nwritten to {}\n", printable(file.string()));
}

Json tune_json(const TuneResult& result, const std::string& scheme) {
  Json rows = Json::array();
  for (const TuneRow& row : result.rows) {
    rows.push_back(Json{{"op", "tune"},
                        {"format", row.format},
                        {"scheme", scheme},
                        {"tokens", row.tokens},
                        {"kernel", row.kernel},
                        {"us", row.seconds * 1e6},
                        {"chosen", row.chosen}});
  }
  return rows;
}

}  // namespace

int run_bench_tune(const BenchSettings& settings, const std::string& out, const CommonOptions& common) {
  const Path file = file_for(out);
  const std::string processor = machine_info().processor;
  TuneRequest request;
  request.formats = settings.wanted_formats();
  request.arithmetic = settings.arithmetic();
  request.arithmetic.kernel.clear();  // each in turn
  request.seconds = settings.seconds;
  ThreadPool pool(common.thread_count());
  const TuneResult result = tune(request, &pool, [&](const std::string& doing) {
    if (!common.quiet) log::info(doing);
  });
  TuningTable table = earlier_table(file, processor);
  for (const TuningRow& row : result.table) table.add(row);
  std::error_code ignored;
  if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path(), ignored);
  write_atomically(file, json_text(table.json(processor)));
  if (common.json) {
    print_json(Json{{"rows", tune_json(result, settings.scheme)}, {"file", file.string()}});
  } else {
    print_out(tune_text(result, file));
  }
  return kExitDone;
}

}  // namespace nibble
