#include "nibble/tokenizer/word_pattern.h"

#include <unicode/uregex.h>

#include <ctime>

#include "nibble/base/error.h"
#include "nibble/tokenizer/regex_dialect.h"
#include "nibble/tokenizer/utf8.h"

namespace nibble {
namespace {

struct CloseRegex {
  void operator()(URegularExpression* regex) const { uregex_close(regex); }
};
using Regex = std::unique_ptr<URegularExpression, CloseRegex>;

constexpr const char* kUseRelease = "use the tokenizer.json of the model's release";

// A processor's time, not a clock's: a busy machine is no reason to refuse a text.
std::chrono::nanoseconds thread_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

// ICU asks after every ten thousand steps back, and after every place where nothing began.
UBool after_steps(const void* budget, int32_t) {
  return static_cast<MatchBudget*>(const_cast<void*>(budget))->go_on() ? 1 : 0;
}

UBool after_place(const void* budget, int64_t) {
  return static_cast<MatchBudget*>(const_cast<void*>(budget))->go_on() ? 1 : 0;
}

}  // namespace

struct WordPattern::Compiled {
  Regex regex;
  std::string shown, file;
  int32_t stack_bytes = 0;

  Error refuse(const char* message, UErrorCode code) const {
    Error error(message);
    error.file(file).value("reason", u_errorName(code)).value("pattern", shown.substr(0, 400)).way_out(kUseRelease);
    return error;
  }
};

struct WordPattern::Running {
  const Compiled* pattern;
  Regex regex;
  MatchBudget* budget;
};

MatchBudget::MatchBudget(size_t units, std::chrono::nanoseconds base, std::chrono::nanoseconds per_unit)
    : end_(thread_time() + base + static_cast<int64_t>(units) * per_unit) {}

bool MatchBudget::go_on() {
  if (++asked_ % 16 == 0) spent_ = spent_ || thread_time() > end_;
  return !spent_;
}

WordPattern::WordPattern(std::unique_ptr<Compiled> compiled) : compiled_(std::move(compiled)) {}
WordPattern::WordPattern(WordPattern&&) noexcept = default;
WordPattern& WordPattern::operator=(WordPattern&&) noexcept = default;
WordPattern::~WordPattern() = default;

WordPattern WordPattern::of_regex(std::string_view pattern, const std::string& file, int32_t stack_bytes) {
  if (pattern.size() > kMaxPatternBytes) {
    throw Error("a regular expression is too long")
        .file(file)
        .value("bytes", pattern.size())
        .value("limit", kMaxPatternBytes)
        .way_out(kUseRelease);
  }
  return compile(icu_pattern(pattern, file), pattern, file, stack_bytes);
}

WordPattern WordPattern::of_text(std::string_view text, const std::string& file) {
  if (text.empty() || text.size() > kMaxPatternBytes) {
    throw Error("a text to split at is empty or too long")
        .file(file)
        .value("bytes", text.size())
        .value("limit", kMaxPatternBytes)
        .way_out(kUseRelease);
  }
  return compile(quoted_pattern(text), text, file, 8 << 20);
}

WordPattern WordPattern::compile(const std::string& icu, std::string_view shown, const std::string& file,
                                 int32_t stack_bytes) {
  auto compiled = std::make_unique<Compiled>();
  compiled->shown = shown;
  compiled->file = file;
  compiled->stack_bytes = stack_bytes;
  const std::u16string wide = utf16_of(icu);
  UErrorCode code = U_ZERO_ERROR;
  compiled->regex.reset(uregex_open(wide.data(), static_cast<int32_t>(wide.size()),
                                    UREGEX_MULTILINE | UREGEX_UNIX_LINES, nullptr, &code));
  if (U_FAILURE(code)) throw compiled->refuse("a regular expression that cannot be read", code);
  return WordPattern(std::move(compiled));
}

WordPattern::Search WordPattern::start(std::u16string_view text, MatchBudget* budget) const {
  UErrorCode code = U_ZERO_ERROR;
  Search search(new Running{compiled_.get(), Regex(uregex_clone(compiled_->regex.get(), &code)), budget},
                [](Running* running) { delete running; });
  URegularExpression* regex = search->regex.get();
  uregex_setStackLimit(regex, compiled_->stack_bytes, &code);
  uregex_setMatchCallback(regex, after_steps, budget, &code);
  uregex_setFindProgressCallback(regex, after_place, budget, &code);
  uregex_setText(regex, text.data(), static_cast<int32_t>(text.size()), &code);
  if (U_FAILURE(code)) throw compiled_->refuse("a regular expression that cannot be run", code);
  return search;
}

void WordPattern::find(Running& search, TextRange range, std::vector<TextRange>* matches) {
  UErrorCode code = U_ZERO_ERROR;
  URegularExpression* regex = search.regex.get();
  uregex_setRegion64(regex, range.begin, range.end, &code);
  uint32_t last_end = UINT32_MAX;
  while (uregex_findNext(regex, &code) != 0 && U_SUCCESS(code)) {
    const TextRange match{static_cast<uint32_t>(uregex_start64(regex, 0, &code)),
                          static_cast<uint32_t>(uregex_end64(regex, 0, &code))};
    if (match.begin == match.end && match.end == last_end) continue;
    matches->push_back(match);
    last_end = match.end;
    if (!search.budget->go_on()) break;
  }
  if (search.budget->is_spent()) code = U_REGEX_TIME_OUT;
  if (U_FAILURE(code))
    throw search.pattern->refuse("a regular expression takes too long, or too much, on this text", code);
}

}  // namespace nibble
