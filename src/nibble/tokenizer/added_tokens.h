// Added tokens: names that stand for one id wherever they occur in a text, found before anything is cut or merged, with
// the flags and the order of Hugging Face's library.
//
// Those that end turns, call tools and the like are control tokens and are found only where the text may hold them:
// all that are special, and of the others those whose name is more than letters, digits and white space, since releases
// declare <think> or <|User|> as ordinary ones.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "nibble/tokenizer/text_normalizer.h"
#include "nibble/tokenizer/tokenizer.h"

namespace nibble {

inline constexpr size_t kMaxAddedTokenBytes = 1024;

struct AddedToken {
  std::string name;
  TokenId id = -1;
  bool special = false;      // left out of decoded text
  bool normalized = false;   // is found in the normalized text, by its normalized name
  bool single_word = false;  // not beside a letter or digit
  bool takes_left_space = false, takes_right_space = false;
  bool control = false;
};

bool is_control_name(std::string_view name, bool special);

// UTF-8 that knows which of its bytes may hold control tokens: ranges that ascend and do not overlap, one for each span
// that may.
struct MarkedText {
  struct Range {
    size_t begin = 0, end = 0;
  };
  std::string text;
  std::vector<Range> trusted;
};

// The text of all spans, broken UTF-8 replaced.
MarkedText marked_text(const std::vector<TextSpan>& spans);
// Each range, and each piece between two, normalized by itself.
MarkedText normalized_text(const MarkedText& marked, const TextNormalizer& normalizer);

// A token if `id` is not negative, else a piece of the text.
struct TextPart {
  TokenId id = -1;
  MarkedText text;
};

class AddedTokenFinder {
 public:
  // Finds `tokens`, which must live as long, by their normalized names.
  AddedTokenFinder(std::vector<const AddedToken*> tokens, const TextNormalizer& normalizer);
  bool empty() const { return tokens_.empty(); }
  // The text cut at its tokens, the longest of those that begin first; parts of text are not empty.
  std::vector<TextPart> cut(const MarkedText& marked) const;

 private:
  struct Match {
    const AddedToken* token = nullptr;
    size_t bytes = 0;
  };
  void insert(std::string_view name, uint32_t token);
  Match longest_at(const MarkedText& marked, size_t at, size_t trusted_end) const;

  std::vector<const AddedToken*> tokens_;
  // A tree of bytes: (node, byte) -> node; the root is 0. Which token ends at a node, or none.
  std::unordered_map<uint64_t, uint32_t> edges_;
  std::vector<uint32_t> ends_;
  std::vector<bool> first_bytes_;
};

}  // namespace nibble
