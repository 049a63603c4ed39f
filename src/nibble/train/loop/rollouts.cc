#include "nibble/train/loop/rollouts.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "nibble/base/rng.h"
#include "nibble/engine/generate_batch.h"
#include "nibble/engine/open_model.h"

namespace nibble {
namespace {

constexpr uint64_t kTrainingChains = uint64_t{1} << 61;  // chains that are judged have small numbers

// One chain as a row: what was read, and what was chosen behind it.
struct Row {
  std::vector<TokenId> tokens, labels;
  uint64_t right = 0, chosen = 0;
};

Row row_of(const Task& task, uint64_t chain, const std::vector<TokenId>& choices, uint64_t length) {
  Row row;
  row.tokens = task.start(chain);
  row.labels.assign(row.tokens.size(), -1);
  for (uint64_t step = 0; step < choices.size(); ++step) {
    const std::optional<TokenId> wanted = task.expected(row.tokens);
    row.right += wanted == choices[step] ? 1U : 0U;
    row.labels.back() = choices[step];
    row.tokens.push_back(choices[step]);
    row.labels.push_back(-1);
    for (const TokenId given : task.input(chain, step)) {
      row.tokens.push_back(given);
      row.labels.push_back(-1);
    }
  }
  row.chosen = choices.size();
  row.tokens.resize(length, 0);  // a chain that ended in NaN is shorter
  row.labels.resize(length, -1);
  return row;
}

double log_prob(std::span<const float> logits, TokenId token, double temperature) {
  const double most = static_cast<double>(*std::ranges::max_element(logits));
  double sum = 0;
  for (const float logit : logits) sum += std::exp((static_cast<double>(logit) - most) / temperature);
  return (static_cast<double>(logits[static_cast<size_t>(token)]) - most) / temperature - std::log(sum);
}

// By the engine, each chain in one pass.
void add_log_probs(Engine* engine, double temperature, Rollouts* rollouts) {
  const SequenceBatch& batch = rollouts->batch;
  const uint64_t vocabulary = engine->spec().vocabulary;
  for (uint64_t row = 0; row < batch.rows; ++row) {
    CachedSequence sequence = engine->make_sequence();
    const uint64_t first = row * batch.length;
    const EngineInput input{&sequence, std::span(batch.tokens).subspan(first, batch.length), true};
    const std::span<const float> logits = engine->run(std::span(&input, 1));
    for (uint64_t i = 0; i < batch.length; ++i) {
      const TokenId label = batch.labels[first + i];
      if (label < 0) continue;
      const auto here = logits.subspan(i * vocabulary, vocabulary);
      rollouts->log_probs[first + i] = static_cast<float>(log_prob(here, label, temperature));
    }
  }
}

}  // namespace

std::vector<double> group_advantages(const std::vector<double>& rewards, uint64_t group) {
  std::vector<double> advantages;
  advantages.reserve(rewards.size());
  for (size_t first = 0; first < rewards.size(); first += group) {
    const std::span<const double> of =
        std::span(rewards).subspan(first, std::min<size_t>(group, rewards.size() - first));
    const auto count = static_cast<double>(of.size());
    const double mean = std::accumulate(of.begin(), of.end(), 0.0) / count;
    double squares = 0;
    for (const double reward : of) squares += (reward - mean) * (reward - mean);
    const double deviation = std::sqrt(squares / count);
    for (const double reward : of) advantages.push_back((reward - mean) / (deviation + 1e-4));
  }
  return advantages;
}

Rollouts roll_out(const Path& model, const Task& task, const RolloutOptions& options, uint64_t round, uint64_t seed,
                  int threads) {
  const OpenedModel opened = open_model(model.string(), threads);
  ThreadPool pool(threads);
  EngineOptions how;
  how.cache = CacheElement::kF32;
  Engine engine(opened.checkpoint, opened.model, how, &pool);
  const auto chain_of = [&](uint64_t row) { return kTrainingChains + round * options.groups + row / options.group; };
  const uint64_t rows = options.groups * options.group;
  BatchGenerateOptions generate;
  generate.tokens = options.length;
  generate.sampler.temperature = options.temperature;
  generate.sampler.seed = random_bits(seed, round);
  std::vector<std::vector<TokenId>> starts;
  starts.reserve(rows);
  for (uint64_t row = 0; row < rows; ++row) starts.push_back(task.start(chain_of(row)));
  const std::vector<BatchAnswer> answers = generate_batch(
      &engine, starts, generate, [&](uint64_t row, uint64_t step) { return task.input(chain_of(row), step); });

  const uint64_t given = task.input(chain_of(0), 0).size();
  Rollouts out;
  out.batch.rows = rows;
  out.batch.length = starts[0].size() + options.length * (1 + given);
  std::vector<double> rewards;
  rewards.reserve(rows);
  for (uint64_t r = 0; r < rows; ++r) {
    const Row row = row_of(task, chain_of(r), answers[r].tokens, out.batch.length);
    out.batch.tokens.insert(out.batch.tokens.end(), row.tokens.begin(), row.tokens.end());
    out.batch.labels.insert(out.batch.labels.end(), row.labels.begin(), row.labels.end());
    rewards.push_back(static_cast<double>(row.right) / static_cast<double>(options.length));
    out.reward += rewards.back() / static_cast<double>(rows);
    out.whole += row.right == options.length ? 1 / static_cast<double>(rows) : 0;
  }
  const std::vector<double> advantages = group_advantages(rewards, options.group);
  out.advantages.assign(out.batch.labels.size(), 0);
  for (size_t i = 0; i < out.batch.labels.size(); ++i) {
    if (out.batch.labels[i] >= 0) out.advantages[i] = static_cast<float>(advantages[i / out.batch.length]);
  }
  out.log_probs.assign(out.batch.labels.size(), 0);
  add_log_probs(&engine, options.temperature, &out);
  return out;
}

}  // namespace nibble
