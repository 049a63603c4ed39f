#include "nibble/engine/bench/floor.h"

#include <algorithm>

namespace nibble {
namespace {

double seconds_at(double amount, double rate) { return rate > 0 ? amount / rate : 0; }

}  // namespace

Floor floor_of(const OpWork& step, const Device& machine) {
  const double reading = seconds_at(step.bytes, machine.memory_bandwidth);
  const double int8 = seconds_at(step.int8_flops, machine.int8_flops);
  const double f32 = seconds_at(step.f32_flops, machine.f32_flops);
  if (reading >= int8 + f32) return {reading, "memory"};
  return {int8 + f32, int8 >= f32 ? "int8" : "f32"};
}

Floor floor_of(std::span<const OpWork> steps, const Device& machine) {
  Floor binding[] = {{0, "memory"}, {0, "int8"}, {0, "f32"}};
  Floor sum;
  for (const OpWork& step : steps) {
    const Floor one = floor_of(step, machine);
    sum.seconds += one.seconds;
    for (Floor& each : binding) each.seconds += each.ceiling == one.ceiling ? one.seconds : 0;
  }
  sum.ceiling = std::max_element(std::begin(binding), std::end(binding), [](const Floor& a, const Floor& b) {
                  return a.seconds < b.seconds;
                })->ceiling;
  return sum;
}

}  // namespace nibble
