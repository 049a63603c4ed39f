#include "nibble/base/cpu_features.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "nibble/base/error.h"
#include "nibble/base/strings.h"

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

bool taken_away(std::string_view extension) {
  const char* list = std::getenv("NIBBLE_WITHOUT");
  if (list == nullptr || *list == 0) return false;
  bool found = false;
  for (const std::string_view word : split(list, ',')) {
    if (word != "vnni" && word != "bf16" && word != "amx") {
      throw Error("NIBBLE_WITHOUT names no extension")
          .value("NIBBLE_WITHOUT", std::string(list))
          .way_out("a list of vnni, bf16 and amx, with commas between them");
    }
    found = found || word == extension;
  }
  return found;
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

bool has_avx_vnni() {
  // __builtin_cpu_supports of g++ 12 does not know it: leaf 7, sub-leaf 1, EAX bit 4.
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return !taken_away("vnni") && best_isa() >= Isa::kAvx2 && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 &&
         (eax & (1U << 4)) != 0;
}

bool has_avx512_vnni() {
  return !taken_away("vnni") && best_isa() == Isa::kAvx512 && __builtin_cpu_supports("avx512vnni") != 0;
}

bool has_avx512_bf16() {
  return !taken_away("bf16") && best_isa() == Isa::kAvx512 && __builtin_cpu_supports("avx512bf16") != 0;
}

bool has_amx_int8() {
  // Leaf 7, EDX: bit 24 AMX-TILE, bit 25 AMX-INT8. The kernel saves tiles only for those who asked (since Linux 5.16).
  static const bool granted = [] {
    constexpr unsigned kTileAndInt8 = 3U << 24;
    constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0 || (edx & kTileAndInt8) != kTileAndInt8) return false;
    return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  }();
  return !taken_away("amx") && granted && has_avx512_vnni();
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
