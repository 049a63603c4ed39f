#include "nibble/train/loop/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "nibble/base/error.h"
#include "nibble/base/strings.h"
#include "nibble/certify/tasks/task.h"
#include "nibble/checkpoint/convention.h"
#include "nibble/train/loop/strict_object.h"

namespace nibble {
namespace {

constexpr uint64_t kMostSteps = 1'000'000'000, kMostTokens = uint64_t{1} << 24;

// Keys of a config.json that the trainable families read, and those that go into the file unread.
constexpr std::string_view kModelKeys[] = {"model_type",
                                           "architectures",
                                           "vocab_size",
                                           "hidden_size",
                                           "intermediate_size",
                                           "num_hidden_layers",
                                           "num_attention_heads",
                                           "num_key_value_heads",
                                           "head_dim",
                                           "hidden_act",
                                           "max_position_embeddings",
                                           "rms_norm_eps",
                                           "rope_theta",
                                           "rope_scaling",
                                           "rope_parameters",
                                           "attention_bias",
                                           "mlp_bias",
                                           "tie_word_embeddings",
                                           "torch_dtype",
                                           "dtype",
                                           "num_experts",
                                           "num_local_experts",
                                           "num_experts_per_tok",
                                           "experts_per_token",
                                           "moe_intermediate_size",
                                           "decoder_sparse_step",
                                           "mlp_only_layers",
                                           "norm_topk_prob",
                                           "router_aux_loss_coef",
                                           "sliding_window",
                                           "use_sliding_window",
                                           "layer_types",
                                           "swiglu_limit",
                                           "initial_context_length",
                                           "bos_token_id",
                                           "eos_token_id",
                                           "pad_token_id",
                                           "use_cache"};

std::optional<Path> path_of(const std::optional<std::string>& text, const Path& folder) {
  if (!text) return std::nullopt;
  const Path path = *text;
  return path.is_absolute() ? path : folder / path;
}

std::vector<Role> roles_of(StrictObject* object, std::string_view key) {
  std::vector<Role> roles;
  for (const std::string& text : object->texts(key)) {
    const std::optional<Role> role = parse_role(text);
    if (role) {
      roles.push_back(*role);
      continue;
    }
    std::vector<std::string> names;
    names.reserve(all_roles().size());
    for (const Role one : all_roles()) names.emplace_back(role_name(one));
    throw std::move(object->error("a role is not known", key)
                        .value("found", text)
                        .value("nearest", nearest_name(text, names))
                        .way_out(fmt::format("roles: {}", fmt::join(names, ", "))));
  }
  return roles;
}

void exactly_one(const StrictObject& object, const std::vector<std::pair<std::string_view, bool>>& given) {
  const auto count = std::ranges::count_if(given, [](const auto& one) { return one.second; });
  if (count == 1) return;
  std::vector<std::string_view> names;
  names.reserve(given.size());
  for (const auto& one : given) names.push_back(one.first);
  throw std::move(object.error("exactly one of several keys is needed", names.front())
                      .value("given", static_cast<uint64_t>(count))
                      .way_out(fmt::format("give one of {}", fmt::join(names, ", "))));
}

DataConfig parse_data(const Json& json, const std::string& file, const Path& folder) {
  StrictObject object(json, file, "data");
  DataConfig data;
  data.task = object.text("task");
  data.tokens = path_of(object.text("tokens"), folder);
  data.text = path_of(object.text("text"), folder);
  data.sequence = object.count("sequence", 2, kMostTokens).value_or(data.sequence);
  data.held_out_every = object.count("held_out_every", 2, 1'000'000).value_or(data.held_out_every);
  object.refuse_others();
  exactly_one(object,
              {{"task", data.task.has_value()}, {"tokens", data.tokens.has_value()}, {"text", data.text.has_value()}});
  if (data.task) make_task(*data.task, 0);  // words its own errors
  return data;
}

RoundingConfig parse_rounding(const Json& json, const std::string& file) {
  StrictObject object(json, file, "quantization");
  RoundingConfig rounding;
  const auto name = object.text("format");
  if (!name) throw std::move(object.error("a key is missing", "format").way_out("name the format to train in"));
  rounding.format = parse_writable_format(*name);
  if (rounding.format.is_dense()) {
    throw std::move(object.error("a 16-bit format needs no training in it", "format")
                        .value("format", *name)
                        .way_out("leave `quantization` out"));
  }
  const auto rule = object.text("rule");
  rounding.rule = rule ? parse_rule(*rule, rounding.format) : default_rule(rounding.format);
  rounding.layout = object.text("layout").value_or("");
  if (!rounding.layout.empty()) parse_layout(rounding.layout, rounding.format);
  rounding.roles = roles_of(&object, "roles");
  if (const auto activations = object.text("activations")) {
    rounding.activations = parse_format(*activations);
    if (rounding.activations->two_level || rounding.activations->block_cols == 0) {
      throw std::move(object.error("a scale of activations would depend on other tokens", "activations")
                          .value("format", *activations)
                          .way_out("choose a format whose scales belong to blocks of one token alone"));
    }
  }
  rounding.during_training = object.flag("during_training").value_or(true);
  object.refuse_others();
  return rounding;
}

// What is exported is what was trained: the key exists so that whoever states it is held to it.
void check_export(const Json& json, const std::string& file, const std::optional<RoundingConfig>& rounding) {
  StrictObject object(json, file, "export");
  const auto name = object.text("format");
  object.refuse_others();
  if (!name) return;
  const Format exported = parse_format(*name);
  if (!rounding) {
    throw std::move(object.error("nothing was trained in the format that is to be exported", "format")
                        .value("exported", *name)
                        .way_out("give `quantization` the same format")
                        .way_out("export in 16 bits and run `nibble quantize`"));
  }
  if (exported == rounding->format) return;
  throw std::move(object.error("the model is trained in another format than it is exported in", "format")
                      .value("trained", rounding->format.name)
                      .value("trained_group", rounding->format.block_cols)
                      .value("exported", exported.name)
                      .value("exported_group", exported.block_cols)
                      .way_out("use one format for both"));
}

OptimizerConfig parse_optimizer(StrictObject* object) {
  OptimizerConfig optimizer;
  const auto set = [](double* field, std::optional<double> given) { *field = given.value_or(*field); };
  set(&optimizer.learning_rate, object->number("learning_rate", 0, 1e3));
  if (const auto kind = object->word("schedule", {"one_cycle", "constant"})) {
    optimizer.schedule = *kind == "constant" ? ScheduleKind::kConstant : ScheduleKind::kOneCycle;
  }
  set(&optimizer.warmup, object->number("warmup", 0, 1));
  set(&optimizer.weight_decay, object->number("weight_decay", 0, 10));
  set(&optimizer.beta1, object->number("beta1", 0, 0.999999));
  set(&optimizer.beta2, object->number("beta2", 0, 0.999999999));
  set(&optimizer.epsilon, object->number("epsilon", 1e-20, 1));
  set(&optimizer.clip, object->number("clip", 0, 1e9));
  return optimizer;
}

EvaluateConfig parse_evaluate(const Json& json, const std::string& file) {
  StrictObject object(json, file, "evaluate");
  EvaluateConfig evaluate;
  evaluate.chains = object.count("chains", 1, uint64_t{1} << 20).value_or(evaluate.chains);
  evaluate.length = object.count("length", 1, kMostTokens).value_or(evaluate.length);
  evaluate.windows = object.count("windows", 1, uint64_t{1} << 20).value_or(evaluate.windows);
  evaluate.every = object.count("every", 0, kMostSteps).value_or(evaluate.every);
  object.refuse_others();
  return evaluate;
}

void check_model_keys(const Json& model, const std::string& file) {
  StrictObject object(model, file, "model");
  for (const std::string_view key : kModelKeys) object.note(key);
  object.refuse_others();
}

RolloutOptions parse_rollouts(const Json& json, const std::string& file, double* ratio_clip) {
  StrictObject object(json, file, "reinforce");
  RolloutOptions rollouts;
  rollouts.groups = object.count("groups", 1, 1'000'000).value_or(rollouts.groups);
  rollouts.group = object.count("group", 2, 1'000'000).value_or(rollouts.group);
  rollouts.length = object.count("length", 1, kMostTokens).value_or(rollouts.length);
  *ratio_clip = object.number("ratio_clip", 1e-6, 1e6).value_or(*ratio_clip);
  object.refuse_others();
  return rollouts;
}

void parse_teacher(const StrictObject& object, TrainConfig* config) {
  if (config->objective != Objective::kDistill) {
    if (!config->teacher) return;
    throw std::move(object.error("a teacher without distillation teaches nothing", "teacher")
                        .way_out(R"(set "objective": "distill")"));
  }
  if (!config->teacher) config->teacher = config->source;
  if (config->teacher) return;
  throw std::move(object.error("distillation needs a teacher", "teacher").way_out("name the 16-bit checkpoint"));
}

void parse_objective(StrictObject* object, const std::string& file, const Path& folder, TrainConfig* config) {
  if (const auto kind = object->word("objective", {"next_token", "distill", "reinforce"})) {
    config->objective = *kind == "distill"     ? Objective::kDistill
                        : *kind == "reinforce" ? Objective::kReinforce
                                               : Objective::kNextToken;
  }
  config->teacher = path_of(object->text("teacher"), folder);
  config->temperature = object->number("temperature", 1e-3, 1e3).value_or(1);
  parse_teacher(*object, config);
  const Json* reinforce = object->object("reinforce");
  if (config->objective != Objective::kReinforce) {
    if (reinforce == nullptr) return;
    throw std::move(object->error("these settings belong to another objective", "reinforce")
                        .way_out(R"(set "objective": "reinforce")"));
  }
  if (!config->data.task) {
    throw std::move(object->error("only the choices of a task can be rewarded", "objective")
                        .way_out(R"(give "data": {"task": …})"));
  }
  if (reinforce != nullptr) config->rollouts = parse_rollouts(*reinforce, file, &config->ratio_clip);
  config->rollouts.temperature = config->temperature;
}

}  // namespace

TrainConfig parse_train_config(const Json& json, const std::string& file, const Path& folder) {
  StrictObject object(json, file, "");
  TrainConfig config;
  config.name = object.text("name").value_or(Path(file).stem().string());
  config.source = path_of(object.text("source"), folder);
  if (const Json* model = object.object("model")) {
    check_model_keys(*model, file);
    config.model = std::make_unique<Json>(*model);
  }
  exactly_one(object, {{"source", config.source.has_value()}, {"model", config.model != nullptr}});
  const Json* data = object.object("data");
  if (data == nullptr) throw std::move(object.error("a key is missing", "data").way_out("say what to train on"));
  config.data = parse_data(*data, file, folder);
  if (const Json* rounding = object.object("quantization")) config.rounding = parse_rounding(*rounding, file);
  if (const Json* exported = object.object("export")) check_export(*exported, file, config.rounding);
  parse_objective(&object, file, folder, &config);
  config.trained = roles_of(&object, "trained");
  config.optimizer = parse_optimizer(&object);
  config.balance_loss = object.number("balance_loss", 0, 1e3).value_or(0);
  config.steps = object.count("steps", 1, kMostSteps).value_or(config.steps);
  config.batch = object.count("batch", 1, 1'000'000).value_or(config.batch);
  config.seed = object.count("seed", 0, uint64_t{1} << 62).value_or(config.seed);
  if (const Json* evaluate = object.object("evaluate")) config.evaluate = parse_evaluate(*evaluate, file);
  config.checkpoint_every = object.count("checkpoint_every", 0, kMostSteps).value_or(config.checkpoint_every);
  config.device = object.word("device", {"cpu", "cuda"}).value_or(config.device);
  object.refuse_others();
  return config;
}

}  // namespace nibble
