#include "nibble/cli/train_config.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "nibble/base/file.h"
#include "nibble/cli/command.h"

namespace nibble {

void add_train_config_options(CLI::App& app, TrainConfigArgs* args) {
  app.add_option("config", args->config, "what to train, and how (docs/train_config.md)")->type_name("CONFIG.json");
  app.add_option("--recipe", args->recipe, "a bundled configuration; --recipes lists them")->type_name("NAME");
  app.add_flag("--recipes", args->recipes, "list the bundled configurations");
  app.add_option("--source", args->source, "the checkpoint to go on from, instead of the configuration's")
      ->type_name("MODEL");
  app.add_option("--out", args->out, "where the run's files go; without it a folder of the configuration's name")
      ->type_name("DIR");
  app.add_flag("--resume", args->resume, "go on with the run in --out");
  app.add_flag("--allow-worse", args->allow_worse, "export weights that are worse than rounding without training");
  app.add_option("--stop-after", args->stop_after, "steps of this call; --resume trains the others")->type_name("N");
  app.add_option("--device", args->device, "cpu or cuda, instead of the configuration's")
      ->check(CLI::IsMember({"cpu", "cuda"}));
}

Json train_config_request(const TrainConfigArgs& args) {
  if (args.recipes) return {{"kind", "recipes"}};
  if (args.config && args.recipe) {
    throw UsageError(Error("a run has one configuration").way_out("give CONFIG.json or --recipe NAME"));
  }
  Json request = {{"kind", "config"}};
  if (args.recipe) {
    request["recipe"] = *args.recipe;
  } else {
    const Path path = *args.config;
    const Path folder = path.parent_path();
    request["config"] = read_json(path);
    request["file"] = path.string();
    request["folder"] = folder.empty() ? "." : folder.string();
  }
  if (args.source) request["source"] = *args.source;
  if (args.out) request["out"] = *args.out;
  if (args.device) request["device"] = *args.device;
  request["resume"] = args.resume;
  request["allow_worse"] = args.allow_worse;
  request["stop_after"] = args.stop_after;
  return request;
}

}  // namespace nibble
