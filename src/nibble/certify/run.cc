#include "nibble/certify/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "nibble/base/error.h"
#include "nibble/base/stopwatch.h"
#include "nibble/certify/attribute.h"
#include "nibble/certify/chain_file.h"
#include "nibble/certify/same_architecture.h"
#include "nibble/certify/task_run.h"
#include "nibble/engine/end_tokens.h"
#include "nibble/engine/generate_batch.h"
#include "nibble/engine/kv/stored_scales.h"
#include "nibble/engine/memory_check.h"
#include "nibble/engine/open_model.h"
#include "nibble/engine/scheme.h"
#include "nibble/engine/score.h"
#include "nibble/hardware/machine_info.h"

namespace nibble {
namespace {

constexpr uint64_t kForkTokens = 24;                    // of a candidate's own text behind a fork
constexpr uint64_t kUnknownMemory = uint64_t{1} << 30;  // of states, where nobody says what is free

class CertifyRun {
 public:
  CertifyRun(const CertifyRequest& request, const std::function<void(std::string_view)>& status)
      : request_(request), status_(status), pool_(request.threads) {
    say("reads headers");
    models_.push_back(open_model(request.reference, request.threads));
    for (const std::string& candidate : request.candidates) {
      models_.push_back(open_model(candidate, request.threads));
      check_same_architecture(reference().model.spec, models_.back().model.spec, candidate);
    }
    for (size_t i = 0; i < models_.size(); ++i) options_.push_back(engine_options(i, request.scheme));
    end_tokens_ = end_tokens(reference().checkpoint);
    if (request.task) task_ = make_task(*request.task, request.sampler.seed + 1);
  }

  CertifyResult run() {
    const Stopwatch watch;
    make_chains();
    check_chains();
    describe();
    say("reads the reference");
    ScoredStates reference = states(0, options_[0], "reference");
    const double noise = measure_noise(&reference);
    for (size_t i = 1; i < models_.size(); ++i) add_candidate(i, noise, &reference);
    result_.certificate.seconds = watch.seconds();
    return std::move(result_);
  }

 private:
  const OpenedModel& reference() const { return models_[0]; }
  const std::string& path(size_t model) const {
    return model == 0 ? request_.reference : request_.candidates[model - 1];
  }
  void say(const std::string& what) const {
    if (status_) status_(what);
  }

  EngineOptions engine_options(size_t model, const std::string& scheme) {
    EngineOptions options;
    options.arithmetic = arithmetics_of_scheme(scheme);
    options.cache = cache_element_of(request_.kv);
    ChosenCacheScales scales = choose_cache_scales(request_.kv_scale, options.cache, path(model),
                                                   models_[model].checkpoint, models_[model].model);
    options.cache_scales = std::move(scales.scales);
    if (model == 0) result_.certificate.kv_scale = scales.name;
    return options;
  }

  // A model in memory, for what is written token by token.
  Engine load(size_t model) {
    const uint64_t bytes = resident_bytes(models_[model].checkpoint, models_[model].model);
    check_memory(path(model), bytes, machine_info().available_bytes);
    say(fmt::format("reads {}", short_name(path(model))));
    return {models_[model].checkpoint, models_[model].model, options_[model], &pool_};
  }

  void make_chains() {
    Certificate& certificate = result_.certificate;
    if (request_.chains) {
      certificate.chains_from = *request_.chains;
      result_.chains = read_chains(*request_.chains);
    } else if (task_) {
      certificate.chains_from = fmt::format("{}, written by the reference", *request_.task);
      const std::vector<TaskChain> runs = write_task(0);
      certificate.reference_task = score_task(*task_, runs, request_.length, request_.bootstrap);
      result_.chains = chains_of_task(*task_, runs);
    } else {
      certificate.chains_from = "written by the reference";
      write_chains();
    }
    result_.prompt_texts.resize(result_.chains.size());
  }

  std::vector<TaskChain> write_task(size_t model) {
    Engine engine = load(model);
    const TaskRunOptions options{request_.task_chains, request_.length, request_.sampler, {}};
    return run_task(&engine, *task_, options, counted("writes chains", request_.task_chains * request_.length));
  }

  std::function<void(uint64_t)> counted(const char* what, uint64_t of) {
    return [this, what, of, done = uint64_t{0}](uint64_t tokens) mutable {
      done += tokens;
      say(fmt::format("{}: {} of at most {} tokens", what, done, of));
    };
  }

  void write_chains() {
    const std::vector<Prompt> prompts = read_prompts(request_.prompts, request_.reference);
    std::vector<std::vector<TokenId>> starts;
    for (const Prompt& prompt : prompts) {
      check_length(reference().model.spec, prompt.tokens.size(), request_.length);
      check_tokens(reference().model.spec, prompt.tokens);
      starts.push_back(prompt.tokens);
    }
    Engine engine = load(0);
    BatchGenerateOptions options;
    options.tokens = request_.length;
    options.sampler = request_.sampler;
    options.end_tokens = end_tokens_;
    std::vector<BatchAnswer> answers =
        generate_batch(&engine, starts, options, {}, counted("writes chains", starts.size() * request_.length));
    for (size_t i = 0; i < answers.size(); ++i) {
      if (answers[i].finish == Finish::kNotANumber) {
        throw Error("the reference's logits are no numbers").file(request_.reference).value("prompt", i);
      }
      result_.chains.push_back({.prompt = std::move(starts[i]),
                                .answer = std::move(answers[i].tokens),
                                .capped = answers[i].finish == Finish::kLength,
                                .cluster = i});
      result_.prompt_texts.push_back(prompts[i].text);
    }
  }

  void check_chains() const {
    for (size_t i = 0; i < result_.chains.size(); ++i) {
      const Chain& chain = result_.chains[i];
      try {
        check_tokens(reference().model.spec, chain.prompt);
        check_tokens(reference().model.spec, chain.answer);
        check_length(reference().model.spec, chain.prompt.size(), chain.answer.size());
      } catch (Error& error) {
        if (request_.chains) error.file(*request_.chains).value("chain", i);
        throw;
      }
    }
  }

  void describe() {
    Certificate& certificate = result_.certificate;
    certificate.reference = request_.reference;
    certificate.scheme = request_.scheme;
    certificate.kv = request_.kv;
    certificate.sampler = request_.sampler;
    certificate.bootstrap = request_.bootstrap;
    describe_chains(result_.chains, &certificate);
  }

  ScoredStates states(size_t model, const EngineOptions& options, const std::string& what) {
    const OpenedModel& opened = models_[model];
    const std::vector<std::vector<TokenId>> tokens = read_tokens(result_.chains);
    uint64_t count = 0;
    for (const std::vector<TokenId>& one : tokens) count += one.size();
    const uint64_t bytes = largest_layer_bytes(opened.checkpoint, opened.model);
    check_memory(path(model), bytes + count * opened.model.spec.hidden * sizeof(float), machine_info().available_bytes);
    return {opened.checkpoint, opened.model, options, tokens, &pool_, [&](ScoreProgress progress) {
              say(fmt::format("{}: layer {} of {}", what, progress.layer, progress.layers));
            }};
  }

  JudgeOptions judge_options(const std::string& candidate) const {
    return {.sampler = request_.sampler, .reference_name = request_.reference, .candidate_name = candidate};
  }

  std::vector<JudgedChain> judge(ScoredStates* reference, ScoredStates* other, const std::string& name) {
    return judge_chains(reference, other, result_.chains, judge_options(name), &pool_, [&](uint64_t done) {
      say(fmt::format("{}: judges chain {} of {}", short_name(name), done, result_.chains.size()));
    });
  }

  // The largest difference of a margin; 0 if it is not asked for.
  double measure_noise(ScoredStates* reference) {
    if (request_.noise == "none") return 0;
    const std::string scheme = request_.noise == request_.scheme ? "w4a16" : request_.noise;
    EngineOptions options = options_[0];
    options.arithmetic = arithmetics_of_scheme(scheme);
    ScoredStates other = states(0, options, fmt::format("reference, {}", scheme));
    result_.certificate.noise_scheme = scheme;
    result_.certificate.noise = measured_noise(judge(reference, &other, request_.reference));
    return result_.certificate.noise->largest;
  }

  std::vector<JudgedChain> judge_candidate(size_t model, ScoredStates* reference) {
    ScoredStates candidate = states(model, options_[model], short_name(path(model)));
    return judge(reference, &candidate, path(model));
  }

  void add_candidate(size_t model, double noise, ScoredStates* reference) {
    const std::vector<JudgedChain> judged = judge_candidate(model, reference);
    CandidateCertificate result = certify_candidate(result_.chains, judged, end_tokens_, noise, request_.bootstrap);
    result.name = short_name(path(model));
    result.path = path(model);
    if (request_.chains && request_.sampler.temperature > 0) result.expected_agreement = expected_agreement(judged);
    if (request_.attribution_places != 0) result.attribution = attribute_forks(model, result.forks, reference);
    write_forks(model, &result);
    if (task_) result.task = score_task(*task_, write_task(model), request_.length, request_.bootstrap);
    result_.certificate.candidates.push_back(std::move(result));
  }

  Attribution attribute_forks(size_t model, const std::vector<Fork>& forks, ScoredStates* states) {
    // A layer of each; what is left is for states, but for a quarter that keys, values and logits may take.
    const uint64_t weights = largest_layer_bytes(reference().checkpoint, reference().model) +
                             largest_layer_bytes(models_[model].checkpoint, models_[model].model);
    const uint64_t available = machine_info().available_bytes;
    check_memory(path(model), weights, available);
    const AttributionRequest request{
        .reference = &models_[0],
        .candidate = &models_[model],
        .reference_options = options_[0],
        .candidate_options = options_[model],
        .chains = result_.chains,
        .forks = forks,
        .judge = judge_options(path(model)),
        .options = {
            .most_places = request_.attribution_places,
            .seed = request_.sampler.seed,
            .state_bytes = available == 0 ? kUnknownMemory : std::max<uint64_t>(1, (available - weights) / 4 * 3)}};
    return attribute(request, states, &pool_, [&](const AttributionProgress& at) {
      say(fmt::format("{}: attributes, sweep {}, layer {} of {}, {} groups under way", short_name(path(model)),
                      at.sweep, at.layer, at.layers, at.groups));
    });
  }

  // What the candidate writes from its widest forks on.
  void write_forks(size_t model, CandidateCertificate* certificate) {
    const std::vector<size_t> forks = widest_forks(*certificate, request_.fork_texts);
    if (forks.empty()) return;
    std::vector<std::vector<TokenId>> starts;
    BatchGenerateOptions options;
    options.tokens = kForkTokens;
    options.sampler = request_.sampler;
    options.end_tokens = end_tokens_;
    for (const size_t index : forks) {
      const Fork& fork = certificate->forks[index];
      const Chain& chain = result_.chains[fork.chain];
      const auto at = static_cast<ptrdiff_t>(chosen_positions(chain)[fork.position]);
      starts.push_back(chain.prompt);
      starts.back().insert(starts.back().end(), chain.answer.begin(), chain.answer.begin() + at);
      options.chains.push_back(fork.chain);
      const uint64_t left = reference().model.spec.max_positions;
      if (left != 0) options.tokens = std::min<uint64_t>(options.tokens, left - starts.back().size());
    }
    Engine engine = load(model);
    std::vector<BatchAnswer> answers = generate_batch(&engine, starts, options);
    for (size_t i = 0; i < forks.size(); ++i) certificate->forks[forks[i]].continuation = std::move(answers[i].tokens);
  }

  const CertifyRequest& request_;
  const std::function<void(std::string_view)>& status_;
  ThreadPool pool_;
  std::vector<OpenedModel> models_;  // the reference, then the candidates
  std::vector<EngineOptions> options_;
  std::vector<TokenId> end_tokens_;
  std::unique_ptr<Task> task_;
  CertifyResult result_;
};

}  // namespace

CertifyResult certify(const CertifyRequest& request, const std::function<void(std::string_view)>& status) {
  return CertifyRun(request, status).run();
}

}  // namespace nibble
