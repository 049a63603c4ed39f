// Which arithmetic a format's weights can be multiplied in, and what it costs by the roofline: weights once over the
// memory's rate, operations over the scheme's peak, whichever takes longer.
//
//   W16A16  16-bit weights and activations
//   W8A8    8-bit floats on both sides
//   W8A16   8-bit weights, dequantized to 16 bits in registers
//   W4A16   four-bit weights, dequantized to 16 bits in registers
//   W4A8    four-bit weights, dequantized to 8-bit floats (on CPUs to 8-bit integers), activations quantized
//   W4A4    block-scaled four-bit floats on both sides
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nibble/hardware/device.h"
#include "nibble/ledger/layout.h"
#include "nibble/numerics/format.h"
#include "nibble/plan/subject.h"

namespace nibble {

enum class Scheme : uint8_t { kW16A16, kW8A16, kW8A8, kW4A16, kW4A8, kW4A4 };

std::string_view scheme_name(Scheme scheme);  // "w4a16"
double scheme_peak(Scheme scheme, const Device& device);
const std::optional<MeasuredRange>& measured_peak(Scheme scheme, const Device& device);
// Why weights of `format` cannot be multiplied that way on the device; "" if they can.
std::string scheme_obstacle(Scheme scheme, const Format& format, const Device& device);
// What a format is usually run in on the device: 8-bit floats in their own arithmetic where there is one, everything
// else with 16 bits of activations.
Scheme plain_scheme(const Format& format, const Device& device);

struct SchemeTime {
  Scheme scheme = Scheme::kW16A16;
  double seconds = 0;  // the experts of one layer on the busiest GPU
  bool compute_bound = false;
  // What kernels were seen to take on this device, by Device::measured_experts; high 0: never measured.
  MeasuredRange measured;
  std::string obstacle;  // not empty: cannot run, seconds is 0
};

struct SchemeChoice {
  std::string phase;  // "decode", "prefill"
  uint64_t tokens = 0;
  std::vector<SchemeTime> times;  // of the format's schemes
  Scheme chosen = Scheme::kW16A16;
  std::string reason;
  // The same experts in 8 bits and in 16, where the device has the arithmetic: four bits can be slower.
  double seconds_8bit = 0, seconds_16bit = 0;
};

struct SchemePlan {
  std::vector<SchemeChoice> choices;
  // Tokens that meet one copy of the experts, from which on W4A16 is slower than 8-bit weights and arithmetic, and than
  // 16-bit ones; none: never up to 2^20.
  std::optional<uint64_t> slower_than_8bit, slower_than_16bit;
  // The second one again by what kernels reached, the middle of each range, as a power of two; none if that was not
  // measured, or never happens.
  std::optional<uint64_t> measured_slower_than_16bit;
};

// For a model with experts, popular as `skew` says (ledger/routing.h); empty for others.
SchemePlan plan_schemes(const Subject& subject, const Format& format, const Layout& layout, const Device& device,
                        uint64_t concurrency, double skew);

}  // namespace nibble
