// A tiktoken file: a line for each token, its bytes in base64 and its rank, which is its id. Two neighbours are merged
// where the vocabulary has their bytes together, the lowest rank first, and a word that is a token is taken whole. How
// text is cut stands in the release's Python code, so only the classes below are read; others are refused by name.
#pragma once

#include <memory>
#include <string>

#include "nibble/tokenizer/tokenizer_json.h"

namespace nibble {

// `config` is the tokenizer_config.json, which names the class and the control tokens.
std::unique_ptr<Tokenizer> tokenizer_from_tiktoken(const NamedText& ranks, const NamedText& config);

}  // namespace nibble
