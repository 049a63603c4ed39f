#include "nibble/verify/rule_helpers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
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

double correlation_z(const std::vector<double>& x, const std::vector<double>& y) {
  const auto n = static_cast<double>(x.size());
  double mx = 0;
  double my = 0;
  for (size_t i = 0; i < x.size(); ++i) mx += x[i] / n, my += y[i] / n;
  double xy = 0;
  double xx = 0;
  double yy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mx) * (y[i] - my);
    xx += (x[i] - mx) * (x[i] - mx);
    yy += (y[i] - my) * (y[i] - my);
  }
  if (n < 8 || xx == 0 || yy == 0) return 0;
  const double r = std::clamp(xy / std::sqrt(xx * yy), -0.999999, 0.999999);
  return std::atanh(r) * std::sqrt(n - 3);
}

}  // namespace nibble
