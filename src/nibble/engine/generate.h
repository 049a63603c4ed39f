// A prompt goes in, tokens come out, one by one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "nibble/engine/engine.h"
#include "nibble/engine/sampler.h"

namespace nibble {

inline constexpr uint64_t kPrefillTokens = 512;  // of a pass: bounds the memory of activations

// Bytes of keys and values that attention reads for tokens [from, to) of a sequence, each once a token.
uint64_t cache_bytes_read(const ModelSpec& spec, CacheElement element, uint64_t from, uint64_t to);

struct GenerateOptions {
  uint64_t tokens = 256;  // at most
  SamplerOptions sampler;
  uint64_t chain = 0;
  std::vector<TokenId> end_tokens;      // end the answer; the token is the answer's last, its text is not shown
  std::vector<std::string> stop_texts;  // end it where they begin
};

enum class Finish : uint8_t { kLength, kEndToken, kStopText, kNotANumber };
std::string_view finish_name(Finish finish);  // "length", "stop", "stop_text", "nan"

struct Phase {
  uint64_t tokens = 0;
  double seconds = 0;
  uint64_t weight_bytes = 0;  // read from memory, pass after pass
  uint64_t cache_bytes = 0;   // keys and values that attention read
  double tokens_per_second() const { return seconds > 0 ? static_cast<double>(tokens) / seconds : 0; }
};

struct Generated {
  std::vector<TokenId> tokens;
  std::string text;  // without a tokenizer: empty
  Finish finish = Finish::kLength;
  Phase prefill, decode;
};

// `tokenizer` null: tokens only, stop texts are not looked for. `show` hears text as soon as it is certain: what may
// still become a stop text is held back. Error if prompt and answer exceed the model's positions.
Generated generate(Engine* engine, const Tokenizer* tokenizer, std::span<const TokenId> prompt,
                   const GenerateOptions& options, const std::function<void(std::string_view)>& show);

// Error unless `prompt` tokens and an answer of `answer` fit into the model's positions; asked before weights are read.
void check_length(const ModelSpec& spec, uint64_t prompt, uint64_t answer);

}  // namespace nibble
