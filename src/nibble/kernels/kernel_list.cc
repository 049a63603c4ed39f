// The kernels, one row each; among equals the first is taken.
#include "nibble/kernels/kernel.h"

namespace nibble {

// clang-format off
#define NIBBLE_KERNELS(ROW) \
  ROW(kAmxInt8)             \
  ROW(kAvx512VnniInt8)      \
  ROW(kAvxVnniInt8)         \
  ROW(kAvx2Int8)            \
  ROW(kReferenceInt8)       \
  ROW(kAvx512F32)           \
  ROW(kAvx2F32)             \
  ROW(kReferenceF32)        \
  ROW(kAvx512BF16)          \
  ROW(kAvx2BF16)            \
  ROW(kReferenceBF16)       \
  ROW(kReferenceE2M1)       \
  ROW(kTensorCoreModel)
// clang-format on

#define NIBBLE_DECLARE(NAME) extern const Kernel NAME;
NIBBLE_KERNELS(NIBBLE_DECLARE)
#undef NIBBLE_DECLARE

std::span<const Kernel* const> kernels() {
#define NIBBLE_ADDRESS(NAME) &NAME,
  static constexpr const Kernel* kList[] = {NIBBLE_KERNELS(NIBBLE_ADDRESS)};
#undef NIBBLE_ADDRESS
  return kList;
}

}  // namespace nibble
