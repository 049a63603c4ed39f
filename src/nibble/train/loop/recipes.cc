// The bundled configurations, and what of a configuration decides about the weights.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "nibble/base/embedded_file.h"
#include "nibble/base/error.h"
#include "nibble/base/strings.h"
#include "nibble/train/loop/config.h"

namespace nibble {

std::span<const EmbeddedFile> recipe_files();  // made from data/recipes

std::vector<std::string_view> recipe_names() {
  std::vector<std::string_view> names;
  names.reserve(recipe_files().size());
  for (const EmbeddedFile& file : recipe_files()) names.push_back(file.name);
  return names;
}

TrainConfig load_recipe(std::string_view name) {
  for (const EmbeddedFile& file : recipe_files()) {
    if (file.name != name) continue;
    const std::string source = fmt::format("recipe {}", name);
    TrainConfig config = parse_train_config(parse_json(file.text, source), source, ".");
    config.name = name;
    return config;
  }
  const std::vector<std::string_view> views = recipe_names();
  const std::vector<std::string> names(views.begin(), views.end());
  Error refusal("there is no recipe of this name");
  refusal.value("recipe", std::string(name));
  if (const std::string nearest = nearest_name(name, names); !nearest.empty()) refusal.value("nearest", nearest);
  throw std::move(refusal.way_out(fmt::format("recipes: {}", fmt::join(names, ", "))));
}

std::string config_fingerprint(const TrainConfig& config) {
  const OptimizerConfig& opt = config.optimizer;
  std::string text =
      fmt::format("source={};model={};task={};tokens={};text={};sequence={};held_out_every={}",
                  config.source ? config.source->string() : "", config.model ? config.model->dump() : "",
                  config.data.task.value_or(""), config.data.tokens ? config.data.tokens->string() : "",
                  config.data.text ? config.data.text->string() : "", config.data.sequence, config.data.held_out_every);
  text += fmt::format(";objective={};teacher={};temperature={};steps={};batch={};seed={};balance_loss={}",
                      static_cast<int>(config.objective), config.teacher ? config.teacher->string() : "",
                      config.temperature, config.steps, config.batch, config.seed, config.balance_loss);
  text += fmt::format(
      ";lr={};schedule={};warmup={};decay={};betas={},{};epsilon={};clip={};trained=", opt.learning_rate,
      static_cast<int>(opt.schedule), opt.warmup, opt.weight_decay, opt.beta1, opt.beta2, opt.epsilon, opt.clip);
  if (config.objective == Objective::kReinforce) {
    text += fmt::format("{}x{}x{},{};", config.rollouts.groups, config.rollouts.group, config.rollouts.length,
                        config.ratio_clip);
  }
  for (const Role role : config.trained) text += fmt::format("{},", role_name(role));
  if (!config.rounding) return text;
  const RoundingConfig& rounding = *config.rounding;
  text += fmt::format(";format={};rule={};layout={};activations={};during_training={};roles=", rounding.format.name,
                      rounding.rule.name(), rounding.layout, rounding.activations ? rounding.activations->name : "",
                      rounding.during_training);
  for (const Role role : rounding.roles) text += fmt::format("{},", role_name(role));
  return text;
}

}  // namespace nibble
