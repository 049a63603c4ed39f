// One observation about a checkpoint: what `verify` prints a line for. The readers report through the same type, so
// that a strict reader (which throws at the first error) and `verify` (which lists all of them) cannot disagree.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "nibble/base/error.h"

namespace nibble {

enum class Severity { kNote, kWarning, kError };

struct Finding {
  Severity severity = Severity::kError;
  std::string rule;  // stable name, kebab-case: "index-mismatch"
  std::string file;
  std::string tensor;
  std::string message;  // what is wrong and what to do, one sentence each
  std::vector<std::pair<std::string, std::string>> values;
};

using Findings = std::vector<Finding>;

const char* severity_name(Severity severity);
// An Error as a finding of severity error under `rule`, and back.
Finding finding_of(const Error& error, std::string rule);
Error error_of(const Finding& finding);
bool has_error(const Findings& findings);
// Throws the first finding of severity error, if there is one.
void throw_first_error(const Findings& findings);

}  // namespace nibble
