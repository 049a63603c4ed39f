#include "nibble/plan/scheme.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "nibble/base/checked_math.h"
#include "nibble/ledger/routing.h"

namespace nibble {
namespace {

constexpr Scheme kSchemes[] = {Scheme::kW16A16, Scheme::kW8A16, Scheme::kW8A8,
                               Scheme::kW4A16,  Scheme::kW4A8,  Scheme::kW4A4};
constexpr uint64_t kMostTokens = uint64_t{1} << 20;
constexpr double kBits8 = 8, kBits16 = 16;

bool four_bit(const Format& format) { return format.code_bits() == 4; }

// One layer's experts on the busiest GPU; tokens are those that meet this copy of the experts.
struct ExpertWork {
  double elements = 0;         // that it holds
  double flops_per_token = 0;  // its share of a token's
  Routing routing;
  uint64_t ranks = 1;

  double seconds(double tokens, double bits, double flops, double bandwidth) const {
    return std::max(read(tokens, bits, bandwidth), tokens * flops_per_token / flops);
  }
  double read(double tokens, double bits, double bandwidth) const {
    return routing.busiest_share(tokens, ranks) * elements * bits / 8 / bandwidth;
  }
};

std::optional<ExpertWork> expert_work(const Subject& subject, const Layout& layout, double skew) {
  const ModelSpec& spec = subject.spec;
  if (spec.experts == 0) return std::nullopt;
  double elements = 0;
  for (const ParamSpec& param : subject.params) {
    if (param.role != Role::kRoutedExpert || param.shape.size() != 3) continue;
    double product = 1;
    for (const uint64_t dim : param.shape) product *= static_cast<double>(dim);
    elements += product;
  }
  double layers = 0;
  for (const LayerSpec& layer : spec.layers) layers += layer.mlp == MlpKind::kMoe ? 1 : 0;
  if (layers == 0) return std::nullopt;
  elements /= layers;
  const double active = elements / static_cast<double>(spec.experts) * static_cast<double>(spec.experts_per_token);
  Routing routing(spec.experts, spec.experts_per_token, skew);
  const auto gpus = static_cast<double>(layout.expert_gpus());
  const double flops = 2 * active * routing.rank_load(layout.ep) / gpus;
  return ExpertWork{elements / gpus, flops, std::move(routing), layout.ep};
}

double middle(const MeasuredRange& range) { return (range.low + range.high) / 2; }

// First number of tokens at which `slower` holds; it holds for all larger ones once arithmetic decides both sides.
std::optional<uint64_t> first_tokens(const auto& slower) {
  if (!slower(kMostTokens)) return std::nullopt;
  uint64_t low = 0;
  uint64_t high = kMostTokens;
  while (high - low > 1) {
    const uint64_t middle = low + (high - low) / 2;
    (slower(middle) ? high : low) = middle;
  }
  return high;
}

class Chooser {
 public:
  Chooser(ExpertWork work, const Format& format, const Device& device)
      : work_(std::move(work)), format_(&format), device_(&device), bits_(format.bits_per_weight(4096, 4096)) {}

  double seconds(Scheme scheme, uint64_t tokens) const {
    return work_.seconds(static_cast<double>(tokens), bits_, scheme_peak(scheme, *device_), device_->memory_bandwidth);
  }
  double in_bits(double bits, double flops, uint64_t tokens) const {
    return flops == 0 ? 0 : work_.seconds(static_cast<double>(tokens), bits, flops, device_->memory_bandwidth);
  }

  // Share of the measured ceiling at so many tokens, between the rows by the logarithm; nothing if there are no rows.
  std::optional<MeasuredRange> share(Scheme scheme, uint64_t tokens) const {
    const MeasuredExperts* before = nullptr;
    for (const MeasuredExperts& row : device_->measured_experts) {
      if (row.scheme != scheme_name(scheme)) continue;
      if (row.tokens >= tokens) {
        if (before == nullptr) return row.share;
        const double at = std::log(static_cast<double>(tokens) / static_cast<double>(before->tokens)) /
                          std::log(static_cast<double>(row.tokens) / static_cast<double>(before->tokens));
        return MeasuredRange{before->share.low + at * (row.share.low - before->share.low),
                             before->share.high + at * (row.share.high - before->share.high)};
      }
      before = &row;
    }
    if (before == nullptr) return std::nullopt;
    return before->share;
  }

  // Seconds that kernels would take by what was measured; high 0: unknown.
  MeasuredRange measured(Scheme scheme, double bits, uint64_t tokens) const {
    const auto reached = share(scheme, tokens);
    if (!reached || !device_->measured_read) return {};
    const auto& matrix = measured_peak(scheme, *device_);
    const double flops = matrix ? (matrix->low + matrix->high) / 2 : scheme_peak(scheme, *device_);
    const double ceiling = work_.seconds(static_cast<double>(tokens), bits, flops, device_->measured_read->low);
    return {ceiling / reached->high, ceiling / reached->low};
  }
  double bits() const { return bits_; }

  // Measured shares rise and fall: the first power of two, not the only crossing.
  std::optional<uint64_t> measured_crossover() const {
    for (uint64_t tokens = 1; tokens <= kMostTokens; tokens *= 2) {
      if (middle(measured(Scheme::kW4A16, bits_, tokens)) > middle(measured(Scheme::kW16A16, kBits16, tokens)))
        return tokens;
    }
    return std::nullopt;
  }

  // `meeting`: of the phase's tokens, those that meet one copy of the experts.
  SchemeChoice choose(std::string phase, uint64_t tokens, uint64_t meeting) const {
    SchemeChoice choice;
    choice.phase = std::move(phase);
    choice.tokens = tokens;
    for (const Scheme scheme : kSchemes) choice.times.push_back(time_of(scheme, meeting));
    // By what was measured, if it was for all that can run; else by the roofline.
    const bool all_measured = std::all_of(choice.times.begin(), choice.times.end(), [](const SchemeTime& time) {
      return !time.obstacle.empty() || time.measured.high > 0;
    });
    const auto cost = [&](const SchemeTime& time) { return all_measured ? middle(time.measured) : time.seconds; };
    // Of equal ones the format's usual, as in the step above.
    const Scheme usual = plain_scheme(*format_, *device_);
    const SchemeTime* best = nullptr;
    for (const SchemeTime& time : choice.times) {
      if (time.scheme == usual) best = &time;
    }
    for (const SchemeTime& time : choice.times) {
      if (time.obstacle.empty() && cost(time) < cost(*best) * 0.999) best = &time;
    }
    choice.seconds_8bit = in_bits(kBits8, device_->e4m3_flops, meeting);
    choice.seconds_16bit = in_bits(kBits16, device_->bf16_flops, meeting);
    choice.chosen = best->scheme;
    choice.reason = best->compute_bound || best->scheme != usual
                        ? "arithmetic decides: the highest peak that the device has for this format"
                        : "reading the weights decides: the format's usual arithmetic";
    if (all_measured) choice.reason = "fastest by what kernels reached on this device";
    return choice;
  }

 private:
  SchemeTime time_of(Scheme scheme, uint64_t meeting) const {
    SchemeTime time;
    time.scheme = scheme;
    time.obstacle = scheme_obstacle(scheme, *format_, *device_);
    if (!time.obstacle.empty()) return time;
    time.measured = measured(scheme, bits_, meeting);
    time.seconds = seconds(scheme, meeting);
    time.compute_bound =
        time.seconds > work_.read(static_cast<double>(meeting), bits_, device_->memory_bandwidth) * 1.0000001;
    return time;
  }

  ExpertWork work_;
  const Format* format_;
  const Device* device_;
  double bits_;
};

}  // namespace

std::string_view scheme_name(Scheme scheme) {
  switch (scheme) {
    case Scheme::kW16A16: return "w16a16";
    case Scheme::kW8A16: return "w8a16";
    case Scheme::kW8A8: return "w8a8";
    case Scheme::kW4A16: return "w4a16";
    case Scheme::kW4A8: return "w4a8";
    case Scheme::kW4A4: return "w4a4";
  }
  return "";
}

double scheme_peak(Scheme scheme, const Device& device) {
  switch (scheme) {
    case Scheme::kW16A16:
    case Scheme::kW8A16:
    case Scheme::kW4A16: return device.bf16_flops;
    case Scheme::kW8A8: return device.e4m3_flops;
    case Scheme::kW4A8: return device.kind == DeviceKind::kCpu ? device.int8_flops : device.e4m3_flops;
    case Scheme::kW4A4: return device.e2m1_flops;
  }
  return 0;
}

const std::optional<MeasuredRange>& measured_peak(Scheme scheme, const Device& device) {
  if (scheme == Scheme::kW4A8 && device.kind == DeviceKind::kCpu) return device.measured_int8;
  return scheme == Scheme::kW8A8 || scheme == Scheme::kW4A8 ? device.measured_e4m3 : device.measured_bf16;
}

std::string scheme_obstacle(Scheme scheme, const Format& format, const Device& device) {
  const uint64_t bits = format.code_bits();
  const bool fits = scheme == Scheme::kW16A16                             ? bits >= 16
                    : scheme == Scheme::kW8A8 || scheme == Scheme::kW8A16 ? bits == 8
                                                                          : bits == 4;
  if (!fits) return fmt::format("the weights have {} bits", bits);
  if (scheme == Scheme::kW4A4 && format.element != Element::kE2M1) return "the weights are no four-bit floats";
  if (scheme == Scheme::kW8A8 && format.element != Element::kE4M3 && format.element != Element::kE5M2)
    return "the weights are no 8-bit floats";
  if (scheme_peak(scheme, device) <= 0) return fmt::format("{} has no unit for it", device.title);
  return "";
}

Scheme plain_scheme(const Format& format, const Device& device) {
  if (four_bit(format)) return Scheme::kW4A16;
  if (format.code_bits() != 8) return Scheme::kW16A16;
  return scheme_obstacle(Scheme::kW8A8, format, device).empty() ? Scheme::kW8A8 : Scheme::kW8A16;
}

SchemePlan plan_schemes(const Subject& subject, const Format& format, const Layout& layout, const Device& device,
                        uint64_t concurrency, double skew) {
  SchemePlan plan;
  auto work = expert_work(subject, layout, skew);
  if (!work || scheme_peak(plain_scheme(format, device), device) <= 0) return plan;
  const Chooser chooser(*std::move(work), format, device);
  for (const uint64_t tokens : {uint64_t{1}, concurrency, uint64_t{64}, uint64_t{256}}) {
    if (plan.choices.empty() || tokens > plan.choices.back().tokens)
      plan.choices.push_back(
          chooser.choose("decode", tokens, layout.copies_experts() ? ceil_div(tokens, layout.dp) : tokens));
  }
  // A prompt lies in one group.
  for (const uint64_t tokens : {1024U, 8192U}) plan.choices.push_back(chooser.choose("prefill", tokens, tokens));
  if (!four_bit(format)) return plan;
  const auto four = [&](uint64_t tokens) { return chooser.seconds(Scheme::kW4A16, tokens); };
  if (device.e4m3_flops > 0)
    plan.slower_than_8bit =
        first_tokens([&](uint64_t t) { return four(t) > chooser.in_bits(kBits8, device.e4m3_flops, t) * 1.0000001; });
  plan.slower_than_16bit =
      first_tokens([&](uint64_t t) { return four(t) > chooser.in_bits(kBits16, device.bf16_flops, t) * 1.0000001; });
  if (chooser.measured(Scheme::kW4A16, chooser.bits(), 1).high > 0 &&
      chooser.measured(Scheme::kW16A16, kBits16, 1).high > 0)
    plan.measured_slower_than_16bit = chooser.measured_crossover();
  return plan;
}

}  // namespace nibble
