#include "nibble/base/finding.h"

#include <algorithm>
#include <string_view>

namespace nibble {

namespace {

constexpr std::string_view kTry = "; try: ";

}  // namespace

const char* severity_name(Severity severity) {
  switch (severity) {
    case Severity::kNote: return "note";
    case Severity::kWarning: return "warning";
    case Severity::kError: return "error";
  }
  return "error";
}

Finding finding_of(const Error& error, std::string rule) {
  std::string message = error.message();
  for (const auto& doing : error.contexts()) message += " [while " + doing + "]";
  for (const auto& way : error.ways_out()) message += std::string(kTry) + way;
  return {Severity::kError, std::move(rule), error.file(), error.tensor(), std::move(message), error.values()};
}

Error error_of(const Finding& finding) {
  std::string_view text = finding.message;
  const auto next = [&text] {
    const size_t end = std::min(text.find(kTry), text.size());
    const std::string part(text.substr(0, end));
    text.remove_prefix(std::min(end + kTry.size(), text.size()));
    return part;
  };
  Error error(next());
  while (!text.empty()) error.way_out(next());
  if (!finding.file.empty()) error.file(finding.file);
  if (!finding.tensor.empty()) error.tensor(finding.tensor);
  for (const auto& [key, value] : finding.values) error.value(key, value);
  error.way_out("run `nibble verify` on the folder for the whole list");
  return error;
}

bool has_error(const Findings& findings) {
  return std::any_of(findings.begin(), findings.end(), [](const Finding& f) { return f.severity == Severity::kError; });
}

void throw_first_error(const Findings& findings) {
  for (const auto& finding : findings) {
    if (finding.severity == Severity::kError) throw error_of(finding);
  }
}

}  // namespace nibble
