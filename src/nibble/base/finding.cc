#include "nibble/base/finding.h"

#include <algorithm>

namespace nibble {

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
  for (const auto& way : error.ways_out()) message += "; try: " + way;
  return {Severity::kError, std::move(rule), error.file(), error.tensor(), std::move(message), error.values()};
}

Error error_of(const Finding& finding) {
  Error error(finding.message);
  if (!finding.file.empty()) error.file(finding.file);
  if (!finding.tensor.empty()) error.tensor(finding.tensor);
  for (const auto& [key, text] : finding.values) error.value(key, text);
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
