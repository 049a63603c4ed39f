// A chain: a prompt and what followed it, token by token. The candidate is run over it teacher-forced.
//
// A candidate's choice at a position is a function of the tokens before it, so the first position where its choice
// differs from the chain is exactly where its own answer to the same prompt leaves the chain: it need not write it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nibble/tokenizer/tokenizer.h"

namespace nibble {

struct Chain {
  std::vector<TokenId> prompt;  // at least one token
  std::vector<TokenId> answer;  // at least one; the end token that ended it included
  bool capped = false;          // a limit cut the answer; else its own end token ended it
  // Positions in the answer, ascending, that were given to the model and not chosen by it: inputs of a checkable task.
  std::vector<uint64_t> given = {};
  uint64_t cluster = 0;  // chains of one prompt or table, which the bootstrap draws together
};

// Tokens that the model reads to make its choices: all but the answer's last.
std::vector<TokenId> read_tokens(const Chain& chain);
// Positions in the answer that were chosen.
std::vector<uint64_t> chosen_positions(const Chain& chain);
std::vector<std::vector<TokenId>> read_tokens(const std::vector<Chain>& chains);

}  // namespace nibble
