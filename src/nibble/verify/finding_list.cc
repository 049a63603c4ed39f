#include "nibble/verify/finding_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>

#include "nibble/base/strings.h"

namespace nibble {
namespace {

// Of parameters without a tensor (models/model.h).
constexpr std::array<std::string_view, 2> kConsequences = {"empty-parameter", "tie-mismatch"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Length of the run of digits at `at`, and where its first significant digit is.
std::string_view digits_at(std::string_view text, size_t at) {
  size_t end = at;
  while (end < text.size() && is_digit(text[end])) ++end;
  while (at + 1 < end && text[at] == '0') ++at;
  return text.substr(at, end - at);
}

int rank(const Finding& finding) {
  if (finding.rule == kUnfinishedRule) return 0;
  return std::ranges::find(kConsequences, finding.rule) == kConsequences.end() ? 1 : 2;
}

int compare(const Finding& a, const Finding& b) {
  if (a.severity != b.severity) return a.severity > b.severity ? -1 : 1;
  if (rank(a) != rank(b)) return rank(a) < rank(b) ? -1 : 1;
  if (const int order = a.rule.compare(b.rule); order != 0) return order;
  if (const int order = compare_natural(a.file, b.file); order != 0) return order;
  if (const int order = compare_natural(a.tensor, b.tensor); order != 0) return order;
  return compare_natural(a.message, b.message);
}

Finding summary_of(const Finding& first, size_t total) {
  Finding summary;
  summary.severity = first.severity;
  summary.rule = first.rule;
  summary.message = fmt::format("{} findings of this kind in all; {} are not shown", with_commas(total),
                                with_commas(total - kFindingsShown));
  summary.values = {{"total", std::to_string(total)}, {"shown", std::to_string(kFindingsShown)}};
  return summary;
}

}  // namespace

int compare_natural(std::string_view a, std::string_view b) {
  size_t i = 0;
  size_t j = 0;
  while (i < a.size() && j < b.size()) {
    if (is_digit(a[i]) && is_digit(b[j])) {
      const std::string_view x = digits_at(a, i);
      const std::string_view y = digits_at(b, j);
      if (x.size() != y.size()) return x.size() < y.size() ? -1 : 1;
      if (const int order = x.compare(y); order != 0) return order < 0 ? -1 : 1;
      i = static_cast<size_t>(x.data() - a.data()) + x.size();
      j = static_cast<size_t>(y.data() - b.data()) + y.size();
      continue;
    }
    if (a[i] != b[j]) return static_cast<unsigned char>(a[i]) < static_cast<unsigned char>(b[j]) ? -1 : 1;
    ++i;
    ++j;
  }
  if (i < a.size()) return 1;
  if (j < b.size()) return -1;
  return a.compare(b) < 0 ? -1 : (a == b ? 0 : 1);  // "07" and "7"
}

void sort_and_group(Findings* findings) {
  std::stable_sort(findings->begin(), findings->end(),
                   [](const Finding& a, const Finding& b) { return compare(a, b) < 0; });
  Findings kept;
  for (auto begin = findings->begin(); begin != findings->end();) {
    const auto end = std::find_if(begin, findings->end(), [&](const Finding& f) {
      return f.severity != begin->severity || f.rule != begin->rule;
    });
    const auto total = static_cast<size_t>(end - begin);
    // One more than the limit is shown: it takes no more room than the line that would stand for it.
    const bool grouped = total > kFindingsShown + 1;
    const auto shown = grouped ? begin + static_cast<std::ptrdiff_t>(kFindingsShown) : end;
    const Finding first = *begin;
    std::move(begin, shown, std::back_inserter(kept));
    if (grouped) kept.push_back(summary_of(first, total));
    begin = end;
  }
  *findings = std::move(kept);
}

}  // namespace nibble
