// For tests: quantize, and verify --rederive.
#pragma once

#include <string>

#include "nibble/quantize/quantize.h"
#include "nibble/verify/rederive.h"
#include "nibble/verify/verify_for_test.h"

namespace nibble::testing {

inline QuantizeRequest request_for(const Path& source, const Path& target, const std::string& format) {
  QuantizeRequest request;
  request.source = source;
  request.target = target;
  request.format = parse_writable_format(format);
  if (!request.format.is_dense()) request.rule = default_rule(request.format);
  request.quiet = true;
  return request;
}

inline VerifyReport rederive_quietly(const Path& target, const Path& base, int threads = 2) {
  VerifyOptions options;
  options.against = base;
  options.rederive = true;
  options.quiet = true;
  options.threads = threads;
  return verify(target, options);
}

inline Findings rederive_findings(const VerifyReport& report) { return of_rule(report, kRederiveRule); }

}  // namespace nibble::testing
