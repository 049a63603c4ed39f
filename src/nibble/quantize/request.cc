#include "nibble/quantize/request.h"

namespace nibble {

// What a quantizer refuses it refuses when it is made: asked beforehand, it is the same answer.
void check_can_round(const QuantizeRequest& request, const Format& format, SecondLevel level) {
  [[maybe_unused]] const Quantizer quantizer({format, request.rule, request.bit_exact, level});
}

}  // namespace nibble
