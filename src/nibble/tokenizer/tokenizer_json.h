// A tokenizer from the text of its tokenizer.json, and of the tokenizer_config.json beside it, which alone says in some
// releases whether a prompt begins with a token.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "nibble/tokenizer/byte_level_tokenizer.h"

namespace nibble {

struct NamedText {
  std::string name;  // the file, for messages
  std::string text;  // "" if there is none
};

std::unique_ptr<Tokenizer> tokenizer_from_json(const NamedText& tokenizer, const NamedText& config);

// With `add_bos_token` or `add_eos_token` the configuration decides what stands around a prompt, as in transformers;
// else `parts` stays as it is.
void apply_config(const NamedText& config, TokenizerParts* parts);

}  // namespace nibble
