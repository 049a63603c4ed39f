// One regular expression of a pre-tokenizer, run by ICU over UTF-16. Expressions come from files that are not trusted:
// their length, the stack of a match and the time of a text are limited, and what reaches a limit is an Error with the
// file and the expression.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace nibble {

// Code units of a text.
struct TextRange {
  uint32_t begin = 0, end = 0;
  bool operator==(const TextRange&) const = default;
};

inline constexpr size_t kMaxPatternBytes = 16 << 10;  // published ones have a few hundred

struct MatchLimits {
  int32_t stack_bytes = 8 << 20;
  // A text may take `base` and `per_unit` for each of its code units: a hundred times what published expressions take.
  std::chrono::nanoseconds base = std::chrono::seconds(10);
  std::chrono::nanoseconds per_unit = std::chrono::microseconds(20);
};

class WordPattern {
 public:
  // In Oniguruma's syntax (regex_dialect.h).
  static WordPattern of_regex(std::string_view pattern, const std::string& file, const MatchLimits& limits = {});
  static WordPattern of_text(std::string_view text, const std::string& file);

  WordPattern(WordPattern&&) noexcept;
  WordPattern& operator=(WordPattern&&) noexcept;
  ~WordPattern();

  // The matches in each of `ranges`, which ascend: a match sees no further than its range. Calls
  // visit(range, matches) for each. An empty match right behind another one does not count.
  template <typename Visit>
  void for_ranges(std::u16string_view text, const std::vector<TextRange>& ranges, Visit&& visit) const {
    const Search search = start(text);
    std::vector<TextRange> matches;
    for (const TextRange& range : ranges) {
      matches.clear();
      find(*search, range, &matches);
      visit(range, matches);
    }
  }

 private:
  struct Compiled;
  struct Running;
  using Search = std::unique_ptr<Running, void (*)(Running*)>;
  explicit WordPattern(std::unique_ptr<Compiled> compiled);
  static WordPattern compile(const std::string& icu, std::string_view shown, const std::string& file,
                             const MatchLimits& limits);
  Search start(std::u16string_view text) const;
  static void find(Running& search, TextRange range, std::vector<TextRange>* matches);

  std::unique_ptr<Compiled> compiled_;
};

}  // namespace nibble
