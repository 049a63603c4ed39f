// A byte-level BPE tokenizer as plain data, whichever file it was read from, and what encodes with it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nibble/tokenizer/added_tokens.h"
#include "nibble/tokenizer/bpe.h"
#include "nibble/tokenizer/text_normalizer.h"
#include "nibble/tokenizer/tokenizer.h"
#include "nibble/tokenizer/word_cutter.h"

namespace nibble {

inline constexpr uint64_t kMaxTokens = uint64_t{4} << 20;  // released vocabularies have up to 262,144

struct VocabularyToken {
  std::string bytes;     // "" for an id that the file leaves out
  bool of_bytes = true;  // false: a name that no text's bytes spell, such as that of an added token
};

struct TokenizerParts {
  std::vector<VocabularyToken> vocabulary;  // by id
  std::vector<BpeMerge> merges;             // by rank; ids are in the vocabulary
  bool whole_words = false;                 // a word that is a token is taken without merging
  TokenId unknown = -1;                     // in the vocabulary, or -1
  bool fuse_unknown = false;
  std::vector<AddedToken> added;  // names and ids differ
  TextNormalizer normalizer;
  std::vector<CutStep> steps;
  std::vector<TokenId> prefix, suffix;
};

std::unique_ptr<Tokenizer> make_byte_level_tokenizer(TokenizerParts parts);

}  // namespace nibble
