#include "nibble/engine/work.h"

namespace nibble {

OpWork& OpWork::operator+=(const OpWork& other) {
  int8_flops += other.int8_flops;
  f32_flops += other.f32_flops;
  bytes += other.bytes;
  return *this;
}

OpWork product_work(const WeightLayout& layout, ActivationKind activations, uint64_t tokens) {
  const double flops =
      2.0 * static_cast<double>(layout.n) * static_cast<double>(layout.k) * static_cast<double>(tokens);
  OpWork work;
  (activations == ActivationKind::kInt8 ? work.int8_flops : work.f32_flops) = flops;
  work.bytes = static_cast<double>(layout.bytes());
  return work;
}

OpWork sum_of(std::span<const OpWork> steps) {
  OpWork sum;
  for (const OpWork& step : steps) sum += step;
  return sum;
}

}  // namespace nibble
