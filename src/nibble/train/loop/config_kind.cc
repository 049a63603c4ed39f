// "config": trains what a CONFIG.json or a recipe says. The request of plugin.h:
//
//   {"kind": "config", "config": {…}, "file": "CONFIG.json", "folder": "its folder"   or   "recipe": NAME,
//    "source": "instead of the recipe's",
//    "out": "FOLDER", "resume": false, "allow_worse": false, "stop_after": 0, "device": "instead of the
//    configuration's"}
//
// and "recipes", which lists the bundled ones.
#include <fmt/format.h>
#include <malloc.h>

#include <nlohmann/json.hpp>

#include "nibble/base/error.h"
#include "nibble/train/kind.h"
#include "nibble/train/loop/run.h"

namespace nibble {
namespace {

const std::string kWhere = "the request";

TrainConfig config_of(const Json& request) {
  if (const auto recipe = json_string(request, "recipe", kWhere)) return load_recipe(*recipe);
  const std::string file = json_string(request, "file", kWhere).value_or("the configuration");
  const Json* config = json_member(request, "config");
  if (config == nullptr) throw Error("there is nothing to train").way_out("give a CONFIG.json, or --recipe NAME");
  return parse_train_config(*config, file, json_string(request, "folder", kWhere).value_or("."));
}

// Activations of a step are freed and asked for again in the next. Given back to the system in between, their pages
// would be cleared and mapped anew, a seventh of a step's time.
void keep_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, 1 << 25);  // the most that the C library takes
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
}

TrainAnswer run_config(const Json& json, const TrainHost& host) {
  keep_freed_memory();
  TrainRequest request;
  request.config = config_of(json);
  if (const auto source = json_string(json, "source", kWhere)) {
    if (!request.config.source) {
      throw Error("this configuration begins a model and takes no source")
          .value("name", request.config.name)
          .way_out("leave --source out");
    }
    const bool was_teacher = request.config.teacher == request.config.source;
    request.config.source = *source;
    if (was_teacher) request.config.teacher = *source;
  }
  request.config.device = json_string(json, "device", kWhere).value_or(request.config.device);
  request.out = json_string(json, "out", kWhere).value_or(request.config.name);
  request.resume = json_bool(json, "resume", kWhere).value_or(false);
  request.allow_worse = json_bool(json, "allow_worse", kWhere).value_or(false);
  request.stop_after = json_uint(json, "stop_after", kWhere).value_or(0);
  request.threads = host.threads;
  const TrainOutcome outcome = run_training(request, host);
  return {json_text(outcome_json(request, outcome)), outcome_text(request, outcome)};
}

TrainAnswer list_recipes(const Json& /*request*/, const TrainHost& /*host*/) {
  Json names = Json::array();
  std::string text;
  for (const std::string_view name : recipe_names()) {
    names.push_back(name);
    text += fmt::format("{}\n", name);
  }
  return {json_text({{"recipes", names}}), text};
}

}  // namespace

extern const TrainKind kConfigKind;
const TrainKind kConfigKind{"config", run_config};
extern const TrainKind kRecipesKind;
const TrainKind kRecipesKind{"recipes", list_recipes};

}  // namespace nibble
