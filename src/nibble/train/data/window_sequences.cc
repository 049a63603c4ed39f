#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "nibble/base/check.h"
#include "nibble/base/error.h"
#include "nibble/base/rng.h"
#include "nibble/base/strings.h"
#include "nibble/certify/chain_file.h"
#include "nibble/train/data/train_data.h"

namespace nibble {
namespace {

constexpr uint64_t kMostTextBytes = uint64_t{1} << 32;

struct Window {
  size_t text = 0;
  uint64_t begin = 0;
};

// The order of `count` things in round `round`: by random keys, so that no state is kept.
std::vector<uint32_t> shuffled(uint64_t seed, uint64_t round, size_t count) {
  std::vector<std::pair<uint64_t, uint32_t>> keys;
  keys.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    keys.emplace_back(random_bits(random_bits(seed, round), i), static_cast<uint32_t>(i));
  }
  std::ranges::sort(keys);
  std::vector<uint32_t> order;
  order.reserve(count);
  for (const auto& [key, index] : keys) order.push_back(index);
  return order;
}

class WindowSequences final : public TrainData {
 public:
  WindowSequences(std::vector<TokenText> texts, const WindowOptions& options)
      : texts_(std::move(texts)), options_(options) {
    for (size_t t = 0; t < texts_.size(); ++t) cut(t);
    NIBBLE_CHECK(options_.held_out_every >= 2);
    if (training_.empty() || held_out_.empty()) {
      throw Error("there are too few windows of tokens to train on some and judge by others")
          .value("windows", training_.size() + held_out_.size())
          .value("length", options_.length)
          .way_out("give more text")
          .way_out("lower `sequence` or `held_out_every`");
    }
  }

  uint64_t length() const override { return options_.length; }
  uint64_t vocabulary() const override { return vocabulary_; }
  std::string summary() const override {
    return fmt::format("{} tokens in {} windows of {}, {} of them held out", with_commas(tokens_),
                       training_.size() + held_out_.size(), options_.length, held_out_.size());
  }
  void append(uint64_t number, SequenceBatch* batch) const override {
    const uint64_t round = number / training_.size();
    if (round != round_ || order_.empty()) {
      order_ = shuffled(options_.seed, round, training_.size());
      round_ = round;
    }
    add(training_[order_[number % training_.size()]], batch);
  }
  uint64_t held_out() const override { return held_out_.size(); }
  void append_held_out(uint64_t number, SequenceBatch* batch) const override {
    add(held_out_[number % held_out_.size()], batch);
  }

 private:
  void cut(size_t index) {
    const std::vector<TokenId>& tokens = texts_[index].tokens;
    tokens_ += tokens.size();
    for (const TokenId token : tokens) vocabulary_ = std::max(vocabulary_, static_cast<uint64_t>(token) + 1);
    // The last token is only asked for.
    for (uint64_t begin = 0; begin + 1 < tokens.size(); begin += options_.length) {
      const uint64_t number = training_.size() + held_out_.size();
      // By counter, but the first window is trained on and the second held out: neither set is ever empty for luck.
      const bool drawn = random_bits(options_.seed, number) % options_.held_out_every == 0;
      const bool kept = number == 1 || (number > 1 && drawn);
      (kept ? held_out_ : training_).push_back({index, begin});
    }
  }

  bool is_asked(const TokenText& text, uint64_t place) const {
    return place < text.tokens.size() && place >= text.asked_from && !std::ranges::binary_search(text.given, place);
  }

  void add(const Window& window, SequenceBatch* batch) const {
    const TokenText& text = texts_[window.text];
    for (uint64_t i = 0; i < options_.length; ++i) {
      const uint64_t place = window.begin + i;
      batch->tokens.push_back(place < text.tokens.size() ? text.tokens[place] : 0);
      batch->labels.push_back(is_asked(text, place + 1) ? text.tokens[place + 1] : -1);
    }
  }

  std::vector<TokenText> texts_;
  WindowOptions options_;
  std::vector<Window> training_, held_out_;
  uint64_t tokens_ = 0, vocabulary_ = 0;
  mutable uint64_t round_ = 0;
  mutable std::vector<uint32_t> order_;  // of round_
};

}  // namespace

std::unique_ptr<TrainData> window_sequences(std::vector<TokenText> texts, const WindowOptions& options) {
  return std::make_unique<WindowSequences>(std::move(texts), options);
}

std::vector<TokenText> texts_of_chains(const Path& path) {
  std::vector<TokenText> texts;
  for (const Chain& chain : read_chains(path)) {
    TokenText text{chain.prompt, chain.prompt.size(), {}};
    text.tokens.insert(text.tokens.end(), chain.answer.begin(), chain.answer.end());
    for (const uint64_t place : chain.given) text.given.push_back(chain.prompt.size() + place);
    texts.push_back(std::move(text));
  }
  return texts;
}

std::vector<TokenText> texts_of_text(const Path& path, const Path& model) {
  const std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(model);
  TokenText text;
  text.tokens = tokenizer->prefix();
  const std::vector<TokenId> own = tokenizer->encode(read_text(path, kMostTextBytes));
  text.tokens.insert(text.tokens.end(), own.begin(), own.end());
  return {std::move(text)};
}

}  // namespace nibble
