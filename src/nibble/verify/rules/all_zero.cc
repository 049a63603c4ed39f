// Parameters that were never filled. A matrix of zeros is an error: a router of zeros routes uniformly and looks
// healthy. A vector of zeros (a bias) is common and only noted. Codes that nobody wrote need not mean zero (in offset
// binary they are the lowest of all): they are one byte throughout, and scales that differ say that the weights do not.
#include <fmt/format.h>

#include "nibble/verify/rule_helpers.h"

namespace nibble {
namespace {

constexpr std::string_view kName = "all-zero";

bool is_zero(const WeightStats& stats) {
  if (!stats.scanned || stats.elements == 0) return false;
  return stats.zeros == stats.elements || (stats.scales.count != 0 && stats.scales.zeros == stats.scales.count);
}

bool is_vector(const Weight& weight, const ParamSpec& param) {
  return weight.shape.size() < 2 || param.role == Role::kBias || param.role == Role::kNorm;
}

Finding zero_finding(const VerifyContext& context, size_t w) {
  const Weight& weight = context.model->table.weights()[w];
  const WeightStats& stats = context.scan->weights[w];
  const std::string shape = shape_text(weight.shape);
  FindingValues values = {{"shape", shape}, {"elements", std::to_string(stats.elements)}};
  if (is_vector(weight, context.model->params[w]))
    return weight_finding(context, w, Severity::kNote, kName,
                          fmt::format("the vector of shape {} is zero throughout", shape), std::move(values));
  if (stats.sampled)
    return weight_finding(
        context, w, Severity::kWarning, kName,
        fmt::format("the {} elements that were sampled of the matrix of shape {} are all zero: verify "
                    "without --quick to be sure",
                    stats.elements, shape),
        std::move(values));
  return weight_finding(
      context, w, Severity::kError, kName,
      fmt::format("the matrix of shape {} is zero throughout: it was never filled. Take it from the source again",
                  shape),
      std::move(values));
}

void check_slices(const VerifyContext& context, size_t w, Findings* findings) {
  const Weight& weight = context.model->table.weights()[w];
  const WeightStats& stats = context.scan->weights[w];
  if (stats.zero_slices == 0 || stats.sampled || is_vector(weight, context.model->params[w])) return;
  findings->push_back(weight_finding(
      context, w, Severity::kError, kName,
      fmt::format("{} of {} matrices of the stack are zero throughout, the first is number {}: they were never filled. "
                  "Take them from the source again",
                  stats.zero_slices, weight.slices(), *stats.first_zero_slice),
      {{"zero", std::to_string(stats.zero_slices)},
       {"matrices", std::to_string(weight.slices())},
       {"first", std::to_string(*stats.first_zero_slice)}}));
}

void check_flat(const VerifyContext& context, size_t w, Findings* findings) {
  const Weight& weight = context.model->table.weights()[w];
  const WeightStats& stats = context.scan->weights[w];
  if (stats.flat_slices == 0 || stats.zero_slices != 0 || is_proved(context, w)) return;
  const unsigned byte = static_cast<uint8_t>(stats.flat_byte);
  const std::string which = weight.slices() < 2 ? "the codes of the matrix"
                                                : fmt::format(
                                                      "the codes of {} of {} matrices of the stack, the first is "
                                                      "number {},",
                                                      stats.flat_slices, weight.slices(), *stats.first_flat_slice);
  findings->push_back(part_finding(
      context, w, PartKind::kCodes, stats.sampled ? Severity::kWarning : Severity::kError, kName,
      stats.sampled
          ? fmt::format("all codes that were sampled are the byte 0x{:02X} under scales that differ: verify without "
                        "--quick to be sure",
                        byte)
          : fmt::format("{} are the byte 0x{:02X} throughout, under scales that differ: they were never written. Take "
                        "them from the source again",
                        which, byte),
      {{"byte", fmt::format("0x{:02X}", byte)},
       {"flat", std::to_string(stats.flat_slices)},
       {"matrices", std::to_string(weight.slices())},
       {"first", std::to_string(*stats.first_flat_slice)}}));
}

void check(const VerifyContext& context, Findings* findings) {
  const auto& weights = context.model->table.weights();
  for (size_t w = 0; w < weights.size(); ++w) {
    if (weights[w].opaque) continue;
    if (is_zero(context.scan->weights[w])) {
      findings->push_back(zero_finding(context, w));
    } else {
      check_slices(context, w, findings);
      check_flat(context, w, findings);
    }
  }
}

}  // namespace

extern const Rule kAllZero = {kName, "matrices (error) and vectors (note) of nothing but zeros; codes never written",
                              check};

}  // namespace nibble
