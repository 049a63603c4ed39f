// The ids of words that were met before, within one text: words repeat, and merging is what takes time. Its size is
// bounded; a full cache starts anew.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "nibble/tokenizer/tokenizer.h"

namespace nibble {

class WordCache {
 public:
  static constexpr size_t kMaxWordBytes = 128;
  static constexpr size_t kMaxWords = 1 << 16;

  // Appends the ids of `word`, by `encode(word, ids)` where it was not met before.
  template <typename Encode>
  void append(std::string_view word, std::vector<TokenId>* ids, Encode&& encode) {
    if (word.size() > kMaxWordBytes) return encode(word, ids);
    const auto known = words_.find(word);
    if (known != words_.end()) {
      const auto [begin, count] = known->second;
      ids->insert(ids->end(), ids_.begin() + begin, ids_.begin() + begin + count);
      return;
    }
    const size_t before = ids->size();
    encode(word, ids);
    if (words_.size() == kMaxWords) {
      words_.clear();
      ids_.clear();
    }
    const auto count = static_cast<uint32_t>(ids->size() - before);
    words_.emplace(word, std::pair{static_cast<uint32_t>(ids_.size()), count});
    ids_.insert(ids_.end(), ids->end() - count, ids->end());
  }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  std::unordered_map<std::string, std::pair<uint32_t, uint32_t>, Hash, std::equal_to<>> words_;  // place in ids_
  std::vector<TokenId> ids_;
};

}  // namespace nibble
