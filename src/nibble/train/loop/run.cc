#include "nibble/train/loop/run.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>
#include <vector>

#include "nibble/base/error.h"
#include "nibble/base/stopwatch.h"
#include "nibble/base/strings.h"
#include "nibble/engine/open_model.h"
#include "nibble/train/data/train_data.h"
#include "nibble/train/export/packed.h"
#include "nibble/train/export/rounded_roles.h"
#include "nibble/train/loop/step_progress.h"
#include "nibble/train/loop/train_log.h"
#include "nibble/train/loop/trainer.h"
#include "nibble/train/model/dense_files.h"

namespace nibble {
namespace {

constexpr uint64_t kLogEvery = 20;  // steps between writes of the log

// A checkpoint's configuration and weights, or a model that begins.
struct Beginning {
  Json config;
  std::vector<Path> companions;
  std::unique_ptr<TrainedTensors> tensors;
};

Beginning read_model(const Path& path, int threads) {
  const OpenedModel opened = open_model(path.string(), threads);
  refuse_untrainable(opened.model.spec, path.string());
  Beginning beginning{dense_config(opened.checkpoint.config()), opened.checkpoint.companions(),
                      std::make_unique<TrainedTensors>(*opened.model.family, opened.model.spec)};
  read_values(opened.checkpoint, opened.model, beginning.tensors.get());
  return beginning;
}

Beginning begin_model(const Json& config, const std::string& name, uint64_t seed) {
  const Family* family = find_family(config);
  if (family == nullptr) {
    throw Error("the model's family is not known")
        .file(name)
        .value("family", family_label(config))
        .way_out(R"(give "model_type": "qwen3_moe", "llama" or "gpt_oss")");
  }
  Beginning beginning{dense_config(config), {}, std::make_unique<TrainedTensors>(*family, family->parse(config, name))};
  initialize(beginning.tensors.get(), seed);
  return beginning;
}

std::unique_ptr<TrainData> open_data(const TrainConfig& config) {
  const DataConfig& data = config.data;
  if (data.task) return task_sequences(make_task(*data.task, config.seed), data.sequence);
  const WindowOptions options{data.sequence, data.held_out_every, config.seed};
  if (data.tokens) return window_sequences(texts_of_chains(*data.tokens), options);
  const std::optional<Path>& tokenizer = config.source ? config.source : config.teacher;
  if (!tokenizer) {
    throw Error("a text needs a tokenizer, and a model that begins has none")
        .file(data.text->string())
        .way_out("give its tokens as a file: `tokens`");
  }
  return window_sequences(texts_of_text(*data.text, *tokenizer), options);
}

void check_fit(const TrainConfig& config, const ModelSpec& spec, const TrainData& data) {
  if (data.vocabulary() > spec.vocabulary) {
    throw Error("the data holds tokens that the model's vocabulary does not have")
        .file(config.name)
        .value("data_tokens", data.vocabulary())
        .value("vocabulary", spec.vocabulary)
        .way_out("set vocab_size to at least as many");
  }
  if (spec.max_positions != 0 && data.length() > spec.max_positions) {
    throw Error("sequences are longer than the model's positions")
        .file(config.name)
        .value("sequence", data.length())
        .value("max_position_embeddings", spec.max_positions)
        .way_out("lower `sequence`");
  }
}

class TrainingRun {
 public:
  TrainingRun(const TrainRequest& request, const TrainHost& host)
      : request_(request), host_(host), config_(request.config) {}

  TrainOutcome run() {
    const Stopwatch watch;
    open();
    outcome_.finished = train();
    if (outcome_.finished) finish();
    outcome_.seconds = watch.seconds();
    return std::move(outcome_);
  }

 private:
  Path path(const char* name) const { return request_.out / name; }
  const RoundingConfig* rounding() const { return config_.rounding ? &*config_.rounding : nullptr; }

  void open() {
    data_ = open_data(config_);
    begin_ = config_.source ? read_model(*config_.source, request_.threads)
                            : begin_model(*config_.model, config_.name, config_.seed);
    const TrainedTensors& tensors = *begin_.tensors;
    check_fit(config_, tensors.spec(), *data_);
    if (rounding() != nullptr) low_bit_tensors(tensors, *rounding());
    if (config_.objective == Objective::kDistill) read_teacher(tensors.spec());
    outcome_.parameters = tensors.parameters();
    const std::string fingerprint = config_fingerprint(config_);
    std::optional<TrainState> state;
    std::error_code none;
    const bool there = std::filesystem::exists(path("state.safetensors"), none);
    if (there && !request_.resume) {
      throw Error("the folder holds a run already")
          .file(request_.out.string())
          .way_out("go on with it: --resume")
          .way_out("choose another folder with --out");
    }
    if (there) state = read_state(path("state.safetensors"), tensors, fingerprint);
    NewFolders made(request_.out);
    trainer_ = std::make_unique<Trainer>(config_, begin_.tensors.get(), teacher_.get(), *data_);
    log_ = std::make_unique<TrainLog>(path("log.jsonl"), state ? state->step : 0);
    made.keep();
    state ? go_on(*state) : start();
  }

  void read_teacher(const ModelSpec& student) {
    teacher_ = std::move(read_model(*config_.teacher, request_.threads).tensors);
    if (teacher_->spec().vocabulary == student.vocabulary) return;
    throw Error("the teacher has another vocabulary than the model that is trained")
        .file(config_.teacher->string())
        .value("vocabulary", teacher_->spec().vocabulary)
        .value("vocabulary_trained", student.vocabulary)
        .way_out("choose a teacher with the same tokenizer");
  }

  void start() {
    log_->add({{"event", "start"},
               {"name", config_.name},
               {"parameters", outcome_.parameters},
               {"data", data_->summary()},
               {"configuration", config_fingerprint(config_)}});
    if (rounding() != nullptr && config_.source) {
      host_.show("rounds the beginning and judges it");
      outcome_.baseline = evaluate();
      note("baseline", *outcome_.baseline);
      host_.note(fmt::format("rounded without training: {}", evaluation_text(*outcome_.baseline, config_.evaluate)));
    }
    log_->flush();
  }

  void go_on(const TrainState& state) {
    trainer_->restore(state);
    if (const Json* event = log_->find("baseline")) outcome_.baseline = evaluation_of(*event);
    host_.note(fmt::format("goes on at step {} of {}", with_commas(state.step), with_commas(config_.steps)));
  }

  void note(const char* what, const Evaluation& evaluation) {
    Json event = {{"event", what}, {"step", trainer_->step()}};
    event.update(evaluation_json(evaluation));
    log_->add(event);
  }

  // Of the weights as they would be exported now.
  Evaluation evaluate() {
    const Stopwatch watch;
    Evaluation evaluation;
    evaluation.loss = trainer_->held_out_loss(config_.evaluate.windows);
    if (config_.data.task) {
      trainer_->pull();
      evaluation.chains =
          evaluate_chains(export_to("evaluated"), *config_.data.task, config_.evaluate, request_.threads);
      remove("evaluated");
      remove("evaluated-packed");
    }
    evaluation.seconds = watch.seconds();
    return evaluation;
  }

  void remove(const char* name) const {
    std::error_code failed;
    std::filesystem::remove_all(path(name), failed);
    if (failed) host_.note(fmt::format("{} cannot be removed: {}", path(name).string(), failed.message()));
  }

  // The pulled weights at OUT/name, and beside them the packed ones if there are any: the folder that would be served.
  Path export_to(const std::string& name) const {
    Path dense = request_.out / name;
    export_dense(dense, begin_.config, begin_.companions, *begin_.tensors);
    if (rounding() == nullptr) return dense;
    export_packed(dense, request_.out / (name + "-packed"), *begin_.tensors, *rounding(), request_.threads);
    return request_.out / (name + "-packed");
  }

  void save() {
    write_state(path("state.safetensors"), *begin_.tensors, trainer_->state());
    log_->flush();
    const std::string svg = loss_curve(config_.name, log_->losses());
    if (!svg.empty()) write_atomically(path("loss.svg"), svg);
  }

  StepReport one_step() {
    if (config_.objective != Objective::kReinforce) return trainer_->train_step();
    trainer_->pull();
    if (task_ == nullptr) task_ = make_task(*config_.data.task, config_.seed);
    const Rollouts rollouts =
        roll_out(export_to("drawn"), *task_, config_.rollouts, trainer_->step(), config_.seed, request_.threads);
    remove("drawn");
    remove("drawn-packed");
    return trainer_->policy_step(rollouts);
  }

  Json step_json(const StepReport& report) const {
    Json event = {{"event", "step"},
                  {"step", report.step},
                  {"loss", report.loss},
                  {"balance", report.balance},
                  {"gradient_norm", report.gradient_norm},
                  {"learning_rate", report.learning_rate},
                  {"seconds", report.seconds}};
    if (config_.objective != Objective::kReinforce) return event;
    event["reward"] = report.reward;
    event["whole"] = report.whole;
    event["log_prob_mean_gap"] = report.log_prob_mean_gap;
    event["log_prob_largest_gap"] = report.log_prob_largest_gap;
    return event;
  }

  // False: stopped before the last step.
  bool train() {
    const uint64_t first = trainer_->step();
    while (trainer_->step() < config_.steps) {
      const StepReport report = one_step();
      log_->add(step_json(report));
      outcome_.last_loss = report.loss;
      outcome_.steps = trainer_->step();
      host_.show(progress_.step(outcome_.steps, config_.steps, report.loss));
      const bool last = outcome_.steps == config_.steps;
      const uint64_t evaluate_every = config_.evaluate.every, save_every = config_.checkpoint_every;
      if (evaluate_every != 0 && outcome_.steps % evaluate_every == 0 && !last) note("evaluate", evaluate());
      if (outcome_.steps % kLogEvery == 0) log_->flush();
      const bool stops = request_.stop_after != 0 && outcome_.steps - first >= request_.stop_after && !last;
      if (last || stops || (save_every != 0 && outcome_.steps % save_every == 0)) save();
      if (stops) return false;
    }
    outcome_.steps = trainer_->step();
    return true;
  }

  void finish() {
    host_.show("judges the trained weights");
    trainer_->pull();
    outcome_.trained = evaluate();
    note("evaluate", *outcome_.trained);
    outcome_.dense = path("dense");
    export_dense(*outcome_.dense, begin_.config, begin_.companions, *begin_.tensors);
    Comparison comparison;
    if (outcome_.baseline) comparison = compare(*outcome_.baseline, *outcome_.trained);
    outcome_.verdict = comparison.why;
    log_->add({{"event", "end"}, {"step", trainer_->step()}, {"worse", comparison.worse}, {"verdict", comparison.why}});
    log_->flush();
    if (rounding() == nullptr) return;
    if (comparison.worse && !request_.allow_worse) {
      throw Error("the trained weights are worse than rounding without training: " + comparison.why)
          .file(request_.out.string())
          .way_out("train longer, or at another learning rate")
          .way_out("export them all the same: --resume --allow-worse");
    }
    outcome_.packed = path("packed");
    export_packed(*outcome_.dense, *outcome_.packed, *begin_.tensors, *rounding(), request_.threads);
  }

  const TrainRequest& request_;
  const TrainHost& host_;
  const TrainConfig& config_;
  StepProgress progress_;
  TrainOutcome outcome_;
  std::unique_ptr<TrainData> data_;
  std::unique_ptr<Task> task_;  // whose chains are drawn
  Beginning begin_;
  std::unique_ptr<TrainedTensors> teacher_;
  std::unique_ptr<Trainer> trainer_;
  std::unique_ptr<TrainLog> log_;
};

}  // namespace

TrainOutcome run_training(const TrainRequest& request, const TrainHost& host) {
  return TrainingRun(request, host).run();
}

}  // namespace nibble
