#include "nibble/engine/generate_batch.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace nibble {
namespace {

// One answer under way.
struct Running {
  uint64_t index = 0;  // of the prompt
  CachedSequence sequence;
  std::vector<TokenId> next;  // tokens that the model has not read yet
};

class BatchRun {
 public:
  BatchRun(Engine* engine, const std::vector<std::vector<TokenId>>& prompts, const BatchGenerateOptions& options,
           const GivenTokens& given)
      : engine_(*engine), prompts_(prompts), options_(options), given_(given), answers_(prompts.size()) {}

  // One pass over all that run; how many tokens were chosen, nullopt at the end.
  std::optional<uint64_t> step() {
    admit();
    if (running_.empty()) return std::nullopt;
    std::vector<EngineInput> inputs;
    inputs.reserve(running_.size());
    for (Running& one : running_) inputs.push_back({&one.sequence, one.next, false});
    const std::span<const float> logits = engine_.run(inputs);
    const uint64_t vocabulary = logits.size() / running_.size(), chosen = running_.size();
    for (size_t i = 0; i < running_.size(); ++i) choose(&running_[i], logits.subspan(i * vocabulary, vocabulary));
    std::erase_if(running_, [](const Running& one) { return one.next.empty(); });
    return chosen;
  }

  std::vector<BatchAnswer> take() { return std::move(answers_); }

 private:
  // A prompt is read in a pass of its own but for its last piece, so that a pass has bounded activations.
  void admit() {
    const uint64_t most = options_.most_sequences == 0 ? prompts_.size() : options_.most_sequences;
    while (waiting_ < prompts_.size() && running_.size() < most) {
      const std::vector<TokenId>& prompt = prompts_[waiting_];
      Running one{waiting_++, engine_.make_sequence(), {}};
      size_t at = 0;
      for (; prompt.size() - at > 1; at += std::min<size_t>(kPrefillTokens, prompt.size() - 1 - at)) {
        const EngineInput input{&one.sequence,
                                std::span(prompt).subspan(at, std::min<size_t>(kPrefillTokens, prompt.size() - 1 - at)),
                                false};
        engine_.run(std::span(&input, 1));
      }
      one.next.push_back(prompt.back());
      running_.push_back(std::move(one));
    }
  }

  // Empties `next` at the answer's end.
  void choose(Running* one, std::span<const float> logits) {
    BatchAnswer& answer = answers_[one->index];
    one->next.clear();
    const auto token =
        choose_token(logits, options_.sampler, options_.chains.empty() ? one->index : options_.chains[one->index],
                     one->sequence.tokens());
    if (!token) {
      answer.finish = Finish::kNotANumber;
      return;
    }
    answer.tokens.push_back(*token);
    if (std::find(options_.end_tokens.begin(), options_.end_tokens.end(), *token) != options_.end_tokens.end()) {
      answer.finish = Finish::kEndToken;
      return;
    }
    if (answer.tokens.size() == options_.tokens) return;
    one->next.push_back(*token);
    if (!given_) return;
    const std::vector<TokenId> given = given_(one->index, answer.tokens.size() - 1);
    one->next.insert(one->next.end(), given.begin(), given.end());
  }

  Engine& engine_;
  const std::vector<std::vector<TokenId>>& prompts_;
  const BatchGenerateOptions& options_;
  const GivenTokens& given_;
  std::vector<BatchAnswer> answers_;
  std::vector<Running> running_;
  uint64_t waiting_ = 0;  // the first prompt that has not begun
};

}  // namespace

std::vector<BatchAnswer> generate_batch(Engine* engine, const std::vector<std::vector<TokenId>>& prompts,
                                        const BatchGenerateOptions& options, const GivenTokens& given,
                                        const std::function<void(uint64_t)>& progress) {
  for (const std::vector<TokenId>& prompt : prompts) {
    check_length(engine->spec(), prompt.size(), options.tokens);
    check_tokens(engine->spec(), prompt);
  }
  BatchRun run(engine, prompts, options, given);
  while (const std::optional<uint64_t> chosen = run.step()) {
    if (progress) progress(*chosen);
  }
  return run.take();
}

}  // namespace nibble
