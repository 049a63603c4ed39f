#include "nibble/certify/chain.h"

#include <algorithm>

namespace nibble {

std::vector<TokenId> read_tokens(const Chain& chain) {
  std::vector<TokenId> tokens = chain.prompt;
  tokens.insert(tokens.end(), chain.answer.begin(), chain.answer.end() - 1);
  return tokens;
}

std::vector<std::vector<TokenId>> read_tokens(const std::vector<Chain>& chains) {
  std::vector<std::vector<TokenId>> all;
  all.reserve(chains.size());
  for (const Chain& chain : chains) all.push_back(read_tokens(chain));
  return all;
}

std::vector<uint64_t> chosen_positions(const Chain& chain) {
  std::vector<uint64_t> positions;
  for (uint64_t i = 0; i < chain.answer.size(); ++i) {
    if (!std::binary_search(chain.given.begin(), chain.given.end(), i)) positions.push_back(i);
  }
  return positions;
}

}  // namespace nibble
