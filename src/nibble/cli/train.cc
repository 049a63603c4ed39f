#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "nibble/base/log.h"
#include "nibble/base/status_line.h"
#include "nibble/cli/commands.h"
#include "nibble/cli/train_config.h"
#include "nibble/cli/train_library.h"

namespace nibble {
namespace {

struct TrainArgs {
  TrainConfigArgs config;
  std::optional<std::string> experiment;
  // Of experiments.
  uint64_t seeds = 3, first_seed = 0;
  std::optional<uint64_t> full_steps, qat_steps;
  std::vector<std::string> schemes;
};

Json request_of(const TrainArgs& args) {
  if (args.experiment && args.config.given()) {
    throw UsageError(Error("an experiment has its own configuration").way_out("leave the other or --experiment out"));
  }
  if (args.config.given()) return train_config_request(args.config);
  if (!args.experiment) {
    throw UsageError(Error("nothing to train")
                         .way_out("give a CONFIG.json, or --recipe NAME")
                         .way_out("name an experiment: --experiment table-walk"));
  }
  Json request = {{"kind", *args.experiment}, {"seeds", args.seeds}, {"first_seed", args.first_seed}};
  if (args.full_steps) request["full_steps"] = *args.full_steps;
  if (args.qat_steps) request["qat_steps"] = *args.qat_steps;
  if (!args.schemes.empty()) request["schemes"] = args.schemes;
  return request;
}

int run_train(const TrainArgs& args, const CommonOptions& common) {
  const Json request = request_of(args);
  const TrainLibrary library = TrainLibrary::open();
  StatusLine status(common.quiet);
  const TrainCallbacks callbacks{.show = [&](const std::string& text) { status.show(text); },
                                 .note =
                                     [&](const std::string& text) {
                                       status.clear();
                                       log::info(text);
                                     }};
  const Json answer = library.run(request, common.thread_count(), callbacks);
  status.clear();
  if (common.json) {
    print_json(answer.at("result"));
  } else {
    print_out(answer.at("text").get<std::string>());
  }
  return kExitDone;
}

}  // namespace

std::function<int()> setup_train(CLI::App& app, CommonOptions& common) {
  auto args = std::make_shared<TrainArgs>();
  add_train_config_options(app, &args->config);
  app.add_option("--experiment", args->experiment, "a published experiment, from nothing: table-walk")
      ->check(CLI::IsMember({"table-walk"}))
      ->type_name("NAME");
  app.add_option("--seeds", args->seeds, "runs of the experiment, each with its own seed")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1000}))
      ->capture_default_str()
      ->type_name("N");
  app.add_option("--first-seed", args->first_seed, "of the runs: this one and those after it")
      ->capture_default_str()
      ->type_name("N");
  app.add_option("--scheme", args->schemes, "only these formats and scale rules, as FORMAT or FORMAT:RULE")
      ->type_name("SCHEME");
  app.add_option("--full-steps", args->full_steps, "steps in full precision, for a shorter run")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 24))
      ->type_name("N");
  app.add_option("--qat-steps", args->qat_steps, "steps with fake quantization")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 24))
      ->type_name("N");
  app.footer(
      "Examples:\n  nibble train --recipe chain-moe --out runs/chain-moe\n  nibble train --experiment table-walk "
      "--seeds 5");
  return [args, &common] { return run_train(*args, common); };
}

}  // namespace nibble
