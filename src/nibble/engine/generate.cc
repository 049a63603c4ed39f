#include "nibble/engine/generate.h"

#include <algorithm>

#include "nibble/base/error.h"
#include "nibble/base/stopwatch.h"
#include "nibble/engine/stop_text.h"
#include "nibble/ledger/kv_cache.h"

namespace nibble {

uint64_t cache_bytes_read(const ModelSpec& spec, CacheElement element, uint64_t from, uint64_t to) {
  const KvCache cache(spec);
  uint64_t bytes = 0;
  for (uint64_t token = from; token < to; ++token) bytes += cache.read_bytes(token + 1, cache_element_bytes(element));
  return bytes;
}

std::string_view finish_name(Finish finish) {
  switch (finish) {
    case Finish::kLength: return "length";
    case Finish::kEndToken: return "stop";
    case Finish::kStopText: return "stop_text";
    case Finish::kNotANumber: return "nan";
  }
  return "length";
}

void check_length(const ModelSpec& spec, uint64_t prompt, uint64_t answer) {
  if (prompt == 0) throw Error("the prompt has no tokens").way_out("give a prompt with -p, --chat or --tokens");
  if (spec.max_positions == 0 || (prompt <= spec.max_positions && answer <= spec.max_positions - prompt)) return;
  throw Error("prompt and answer are longer than the model's positions")
      .value("prompt_tokens", prompt)
      .value("answer_tokens", answer)
      .value("positions", spec.max_positions)
      .way_out("shorten the prompt, or ask for fewer tokens with -n");
}

Generated generate(Engine* engine, const Tokenizer* tokenizer, std::span<const TokenId> prompt,
                   const GenerateOptions& options, const std::function<void(std::string_view)>& show) {
  check_length(engine->spec(), prompt.size(), options.tokens);
  Generated result;
  CachedSequence sequence = engine->make_sequence();
  std::span<const float> logits;
  Stopwatch prefill;
  for (size_t at = 0; at < prompt.size(); at += kPrefillTokens) {
    const EngineInput input{&sequence, prompt.subspan(at, std::min(kPrefillTokens, prompt.size() - at)), false};
    logits = engine->run(std::span(&input, 1));
    result.prefill.weight_bytes += engine->bytes_read();
  }
  result.prefill.seconds = prefill.seconds();
  result.prefill.tokens = prompt.size();
  StopText stop(tokenizer, options.stop_texts, [&](std::string_view text) {
    result.text += text;
    if (show) show(text);
  });
  Stopwatch decode;
  while (result.tokens.size() < options.tokens) {
    const auto token = choose_token(logits, options.sampler, options.chain, sequence.tokens());
    if (!token) {
      result.finish = Finish::kNotANumber;
      break;
    }
    result.tokens.push_back(*token);
    if (std::find(options.end_tokens.begin(), options.end_tokens.end(), *token) != options.end_tokens.end()) {
      result.finish = Finish::kEndToken;
      break;
    }
    if (stop.push(*token)) {
      result.finish = Finish::kStopText;
      break;
    }
    if (result.tokens.size() == options.tokens) break;
    const EngineInput input{&sequence, std::span(&result.tokens.back(), 1), false};
    logits = engine->run(std::span(&input, 1));
    result.decode.weight_bytes += engine->bytes_read();
    ++result.decode.tokens;
  }
  result.decode.seconds = decode.seconds();
  stop.finish();
  const auto cache_bytes = [&](uint64_t from, uint64_t to) {
    return cache_bytes_read(engine->spec(), engine->options().cache, from, to);
  };
  result.prefill.cache_bytes = cache_bytes(0, prompt.size());
  result.decode.cache_bytes = cache_bytes(prompt.size(), prompt.size() + result.decode.tokens);
  return result;
}

}  // namespace nibble
