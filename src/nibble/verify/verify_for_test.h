// For tests: a tiny checkpoint on disk, verified, and what was found.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "nibble/testing/temp_dir.h"
#include "nibble/testing/tiny.h"
#include "nibble/verify/verify.h"

namespace nibble::testing {

inline VerifyReport verify_quietly(const Path& path, VerifyOptions options = {}) {
  options.quiet = true;
  options.threads = 2;
  return verify(path, options);
}

inline VerifyReport verify_tiny(const TinyCheckpoint& tiny, const VerifyOptions& options = {}) {
  const TempDir dir;
  tiny.write(dir / "model");
  return verify_quietly(dir / "model", options);
}

inline VerifyReport verify_against(const TinyCheckpoint& tiny, const TinyCheckpoint& base, VerifyOptions options = {}) {
  const TempDir dir;
  base.write(dir / "base");
  options.against = dir / "base";
  tiny.write(dir / "model");
  return verify_quietly(dir / "model", options);
}

inline Findings of_rule(const VerifyReport& report, std::string_view rule) {
  Findings found;
  std::copy_if(report.findings.begin(), report.findings.end(), std::back_inserter(found),
               [&](const Finding& finding) { return finding.rule == rule; });
  return found;
}

inline Findings of_severity(const VerifyReport& report, Severity severity) {
  Findings found;
  std::copy_if(report.findings.begin(), report.findings.end(), std::back_inserter(found),
               [&](const Finding& finding) { return finding.severity == severity; });
  return found;
}

// Everything a finding says, for substring checks and failure messages.
inline std::string text_of(const Finding& finding) {
  std::string text = std::string(severity_name(finding.severity)) + ": " + finding.rule + ": " + finding.file + ": " +
                     finding.tensor + ": " + finding.message;
  for (const auto& [key, value] : finding.values) text.append("; ").append(key).append(" ").append(value);
  return text;
}

inline std::string text_of(const Findings& findings) {
  std::string text;
  for (const Finding& finding : findings) text += text_of(finding) + "\n";
  return text;
}

inline std::string value_of(const Finding& finding, std::string_view key) {
  const auto found =
      std::find_if(finding.values.begin(), finding.values.end(), [&](const auto& value) { return value.first == key; });
  return found == finding.values.end() ? "" : found->second;
}

}  // namespace nibble::testing
