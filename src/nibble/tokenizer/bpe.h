// Byte pair encoding of one word: its bytes are symbols, and of all neighbours the pair of the lowest rank is merged,
// the leftmost first, until none is left. Time is n log n in the word's length.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "nibble/tokenizer/tokenizer.h"

namespace nibble {

struct BpeMerge {
  TokenId left = 0, right = 0, made = 0;
};

struct BpeModel {
  std::array<TokenId, 256> byte_ids{};                        // -1: the vocabulary lacks the byte
  TokenId unknown = -1;                                       // stands for such a byte; -1: it is left out
  bool fuse_unknown = false;                                  // neighbouring ones are one token
  std::unordered_map<std::string_view, TokenId> whole_words;  // taken without merging (`ignore_merges`, tiktoken)
};

class BpeEncoder {
 public:
  // `merges` by rank; of a pair that stands twice the last counts, as in Hugging Face's library.
  BpeEncoder(BpeModel model, const std::vector<BpeMerge>& merges);

  // What merging works in; a caller keeps it from word to word.
  struct Workspace {
    struct Symbol {
      TokenId id;
      int32_t previous, next;  // -1 at the ends; `next` kMerged for one that has become part of its left neighbour
    };
    struct Candidate {
      uint32_t rank;
      int32_t position;
      TokenId left, right, made;
    };
    std::vector<Symbol> symbols;
    std::vector<Candidate> queue;
  };

  void append_word(std::string_view bytes, Workspace* workspace, std::vector<TokenId>* ids) const;

 private:
  struct Entry {
    uint64_t pair = UINT64_MAX;
    uint32_t rank = 0;
    TokenId made = 0;
  };

  const Entry* find(TokenId left, TokenId right) const;
  void insert(const BpeMerge& merge, uint32_t rank);
  void fill_symbols(std::string_view bytes, Workspace* workspace) const;
  void offer(int32_t position, Workspace* workspace) const;
  void merge_all(Workspace* workspace) const;

  BpeModel model_;
  std::vector<Entry> table_;  // open addressing, at most half full
  int shift_ = 0;
};

}  // namespace nibble
