// How a text is cut into the words that byte pairs are merged within: the pre-tokenizer's steps, one after another.
// A step is a pattern with a behaviour of Hugging Face's `Split`; `Digits` and the expression inside `ByteLevel` are
// such steps too.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nibble/tokenizer/word_pattern.h"

namespace nibble {

// What becomes of a match.
enum class SplitBehavior : uint8_t { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

struct CutStep {
  bool prefix_space = false;           // first, every word that does not begin with a space gets one
  std::optional<WordPattern> pattern;  // then the words are cut at its matches
  SplitBehavior behavior = SplitBehavior::kIsolated;
  bool invert = false;  // what lies between matches counts as a match, and the matches do not
};

// A text and its words, which ascend and are not empty; what no word covers is left out.
struct CutText {
  std::u16string text;
  std::vector<TextRange> words;
};

CutText cut_words(std::u16string text, const std::vector<CutStep>& steps, MatchBudget* budget);

// GPT-2's expression, which `ByteLevel` holds.
inline constexpr std::string_view kGpt2Words =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

}  // namespace nibble
