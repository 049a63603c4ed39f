// The large parts of a tokenizer.json: vocabulary, merges, added tokens. Hundreds of thousands of rows are read in one
// pass without a document tree.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "nibble/base/json.h"
#include "nibble/tokenizer/byte_level_tokenizer.h"

namespace nibble {

struct NameHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
using TokenNames = std::unordered_map<std::string, TokenId, NameHash, std::equal_to<>>;

// Fills vocabulary, merges and what goes with them from the member `model`; returns the vocabulary's names as written.
TokenNames read_bpe_model(std::string_view json, const std::string& file, TokenizerParts* parts);

// Appends the member `added_tokens`. Ids must be those that Hugging Face's library gives, which goes by names alone:
// the vocabulary's, else counted on from its end.
void read_added_tokens(std::string_view json, const std::string& file, const TokenNames& names, TokenizerParts* parts);

// One row that tokenizer.json and tokenizer_config.json share: `content` and flags.
AddedToken added_token_of(const Json& row, TokenId id, const std::string& file);

}  // namespace nibble
