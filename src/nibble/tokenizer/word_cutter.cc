#include "nibble/tokenizer/word_cutter.h"

#include <algorithm>
#include <ranges>

namespace nibble {
namespace {

struct Part {
  TextRange range;
  bool is_match = false;
};

// The matches and what lies between them, so that the parts cover the word.
std::vector<Part> parts_of(TextRange word, const std::vector<TextRange>& matches, bool invert) {
  std::vector<Part> parts;
  uint32_t at = word.begin;
  for (const TextRange& match : matches) {
    if (at != match.begin) parts.push_back({{at, match.begin}, invert});
    parts.push_back({match, !invert});
    at = match.end;
  }
  if (at != word.end) parts.push_back({{at, word.end}, invert});
  return parts;
}

// A part that `joins` is one with the part before it.
template <typename Joins>
void append_joined(const std::vector<Part>& parts, Joins&& joins, std::vector<TextRange>* words) {
  const size_t first = words->size();
  bool previous = false;
  for (const Part& part : parts) {
    if (joins(part.is_match, previous) && words->size() > first) {
      words->back().end = part.range.end;
    } else {
      words->push_back(part.range);
    }
    previous = part.is_match;
  }
}

void append_merged_with_next(const std::vector<Part>& parts, std::vector<TextRange>* words) {
  const size_t first = words->size();
  bool previous = false;
  for (const Part& part : std::ranges::reverse_view(parts)) {
    if (part.is_match && !previous && words->size() > first) {
      words->back().begin = part.range.begin;
    } else {
      words->push_back(part.range);
    }
    previous = part.is_match;
  }
  std::reverse(words->begin() + static_cast<std::ptrdiff_t>(first), words->end());
}

void append_words(const std::vector<Part>& parts, SplitBehavior behavior, std::vector<TextRange>* words) {
  switch (behavior) {
    case SplitBehavior::kIsolated: return append_joined(parts, [](bool, bool) { return false; }, words);
    case SplitBehavior::kContiguous:
      return append_joined(parts, [](bool match, bool previous) { return match == previous; }, words);
    case SplitBehavior::kMergedWithPrevious:
      return append_joined(parts, [](bool match, bool previous) { return match && !previous; }, words);
    case SplitBehavior::kMergedWithNext: return append_merged_with_next(parts, words);
    case SplitBehavior::kRemoved:
      for (const Part& part : parts) {
        if (!part.is_match) words->push_back(part.range);
      }
  }
}

CutText with_prefix_spaces(const CutText& cut) {
  CutText spaced;
  spaced.text.reserve(cut.text.size() + cut.words.size());
  spaced.words.reserve(cut.words.size());
  for (const TextRange& word : cut.words) {
    const auto begin = static_cast<uint32_t>(spaced.text.size());
    if (cut.text[word.begin] != u' ') spaced.text += u' ';
    spaced.text.append(cut.text, word.begin, word.end - word.begin);
    spaced.words.push_back({begin, static_cast<uint32_t>(spaced.text.size())});
  }
  return spaced;
}

}  // namespace

CutText cut_words(std::u16string text, const std::vector<CutStep>& steps, MatchBudget* budget) {
  CutText cut;
  const auto units = static_cast<uint32_t>(text.size());
  cut.text = std::move(text);
  if (units > 0) cut.words.push_back({0, units});
  for (const CutStep& step : steps) {
    if (step.prefix_space) cut = with_prefix_spaces(cut);
    if (!step.pattern || cut.words.empty()) continue;
    std::vector<TextRange> words;
    words.reserve(cut.words.size());
    step.pattern->for_ranges(cut.text, cut.words, budget, [&](TextRange word, const std::vector<TextRange>& matches) {
      append_words(parts_of(word, matches, step.invert), step.behavior, &words);
    });
    std::erase_if(words, [](const TextRange& word) { return word.begin == word.end; });
    cut.words = std::move(words);
  }
  return cut;
}

}  // namespace nibble
