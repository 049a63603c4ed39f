#include "nibble/verify/rule_helpers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "nibble/verify/code_stats.h"

namespace nibble {

Finding part_finding(const VerifyContext& context, size_t weight, PartKind part, Severity severity,
                     std::string_view rule, std::string message, FindingValues values) {
  const Weight& w = context.model->table.weights()[weight];
  const Part* found = w.part(part);
  if (found == nullptr) return weight_finding(context, weight, severity, rule, std::move(message), std::move(values));
  const StoredTensor& tensor = context.checkpoint->tensors()[found->tensor];
  return {severity,    std::string(rule),  context.checkpoint->file_of(tensor),
          tensor.name, std::move(message), std::move(values)};
}

Finding weight_finding(const VerifyContext& context, size_t weight, Severity severity, std::string_view rule,
                       std::string message, FindingValues values) {
  const Weight& w = context.model->table.weights()[weight];
  std::string file;
  if (!w.parts.empty()) file = context.checkpoint->file_of(context.checkpoint->tensors()[w.parts.front().tensor]);
  return {severity, std::string(rule), std::move(file), w.name, std::move(message), std::move(values)};
}

std::string short_number(double value) { return fmt::format("{:.4g}", value); }

std::string shape_text(const std::vector<uint64_t>& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

std::string percent_text(uint64_t part, uint64_t whole) {
  return fmt::format("{:.3g} %", whole == 0 ? 0.0 : 100 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string layer_text(int32_t layer) { return layer < 0 ? "the model" : fmt::format("layer {}", layer); }

double code_rms(const Format& format, const WeightStats& stats) {
  const std::vector<float> values = code_values(format);
  double zero = 0;
  if (format.zero == ZeroPoint::kCode && stats.zero_points != 0) {
    // The values above are those of codes around the format's middle; with zero points the middle is where they say.
    zero = static_cast<double>(stats.zero_point_sum) / static_cast<double>(stats.zero_points) -
           static_cast<double>(values.size()) / 2;
  }
  double squares = 0;
  double count = 0;
  for (size_t c = 0; c < stats.code_histogram.size() && c < values.size(); ++c) {
    const double value = static_cast<double>(values[c]) - zero;
    if (!std::isfinite(value)) continue;
    squares += static_cast<double>(stats.code_histogram[c]) * value * value;
    count += static_cast<double>(stats.code_histogram[c]);
  }
  return count == 0 ? 0 : std::sqrt(squares / count);
}

}  // namespace nibble
