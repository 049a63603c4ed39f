#include "nibble/base/cpu_features.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "nibble/base/error.h"

namespace nibble {
namespace {

Isa detected_isa() {
  const bool avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 &&
                    __builtin_cpu_supports("f16c") != 0 && __builtin_cpu_supports("bmi2") != 0;
  if (!avx2) return Isa::kScalar;
  const bool avx512 = __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
                      __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
                      __builtin_cpu_supports("avx512vbmi") != 0;
  return avx512 ? Isa::kAvx512 : Isa::kAvx2;
}

}  // namespace

Isa best_isa() {
  static const Isa detected = detected_isa();
  const char* wanted = std::getenv("NIBBLE_ISA");
  if (wanted == nullptr) return detected;
  for (const Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512}) {
    if (isa_name(isa) == wanted) return std::min(isa, detected);
  }
  throw Error("NIBBLE_ISA names no instruction set")
      .value("NIBBLE_ISA", std::string(wanted))
      .way_out("set it to scalar, avx2 or avx512");
}

std::string_view isa_name(Isa isa) {
  switch (isa) {
    case Isa::kScalar: return "scalar";
    case Isa::kAvx2: return "avx2";
    case Isa::kAvx512: return "avx512";
  }
  return "scalar";
}

}  // namespace nibble
