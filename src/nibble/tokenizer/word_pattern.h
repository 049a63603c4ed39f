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

// The processor time that the expressions of one text may take together: a hundred times what published ones do.
class MatchBudget {
 public:
  explicit MatchBudget(size_t units, std::chrono::nanoseconds base = std::chrono::milliseconds(250),
                       std::chrono::nanoseconds per_unit = std::chrono::microseconds(10));
  // Cheap, so that it can be asked often. Once it is false it stays so.
  bool go_on();
  bool is_spent() const { return spent_; }

 private:
  std::chrono::nanoseconds end_;
  uint32_t asked_ = 0;
  bool spent_ = false;
};

class WordPattern {
 public:
  // In Oniguruma's syntax (regex_dialect.h).
  static WordPattern of_regex(std::string_view pattern, const std::string& file, int32_t stack_bytes = 8 << 20);
  static WordPattern of_text(std::string_view text, const std::string& file);

  WordPattern(WordPattern&&) noexcept;
  WordPattern& operator=(WordPattern&&) noexcept;
  ~WordPattern();

  // The matches in each of `ranges`, which ascend: a match sees no further than its range. Calls
  // visit(range, matches) for each. An empty match right behind another one does not count.
  template <typename Visit>
  void for_ranges(std::u16string_view text, const std::vector<TextRange>& ranges, MatchBudget* budget,
                  Visit&& visit) const {
    const Search search = start(text, budget);
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
                             int32_t stack_bytes);
  Search start(std::u16string_view text, MatchBudget* budget) const;
  static void find(Running& search, TextRange range, std::vector<TextRange>* matches);

  std::unique_ptr<Compiled> compiled_;
};

}  // namespace nibble
