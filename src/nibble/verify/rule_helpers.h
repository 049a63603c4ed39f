// What most rules need to word a finding.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "nibble/verify/rule.h"

namespace nibble {

using FindingValues = std::vector<std::pair<std::string, std::string>>;

// About one stored part of a weight: file and stored name of that part (of the codes if it has no such part).
Finding part_finding(const VerifyContext& context, size_t weight, PartKind part, Severity severity,
                     std::string_view rule, std::string message, FindingValues values = {});
// About a whole weight: file of its codes, and its logical name.
Finding weight_finding(const VerifyContext& context, size_t weight, Severity severity, std::string_view rule,
                       std::string message, FindingValues values = {});

// Four significant digits.
std::string short_number(double value);
// "[4, 64]".
std::string shape_text(const std::vector<uint64_t>& shape);
// "12.5 %".
std::string percent_text(uint64_t part, uint64_t whole);
// "layer 3", or "the model" for what belongs to no layer.
std::string layer_text(int32_t layer);

// Is it known that nothing of the weight has been read for something else?
inline bool is_proved(const VerifyContext& context, size_t weight) { return (*context.proofs)[weight] != Proof::kNone; }

// Root mean square of a weight's codes as numbers (scale 1, zero points taken off); 0 if none were read.
double code_rms(const Format& format, const WeightStats& stats);

// z value of the correlation between as many numbers on either side; 0 for fewer than eight, or if either are all
// equal.
double correlation_z(const std::vector<double>& x, const std::vector<double>& y);

}  // namespace nibble
