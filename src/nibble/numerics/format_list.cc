// The list of format families, in the order of --help. Rows and nothing else.
#include "nibble/numerics/format.h"

#define NIBBLE_FORMATS(ROW) \
  ROW(kInt4Group)           \
  ROW(kInt4GroupAsym)       \
  ROW(kMxfp4)               \
  ROW(kNvfp4)               \
  ROW(kMxfp8)               \
  ROW(kFp8Block)            \
  ROW(kFp8Channel)          \
  ROW(kFp8Tensor)           \
  ROW(kBf16)                \
  ROW(kF16)                 \
  ROW(kF32)                 \
  ROW(kF64)                 \
  ROW(kE5m2)                \
  ROW(kInt4Channel)         \
  ROW(kInt4ChannelAsym)     \
  ROW(kInt8Group)           \
  ROW(kInt8Channel)         \
  ROW(kInt8Tensor)          \
  ROW(kInt8GroupAsym)       \
  ROW(kInt8ChannelAsym)     \
  ROW(kInt8TensorAsym)      \
  ROW(kE4m3)                \
  ROW(kFp8Group)            \
  ROW(kFp8BlockRxC)         \
  ROW(kQ4Min)               \
  ROW(kQ4K)

namespace nibble {

#define ROW(family) extern const FormatFamily family;
NIBBLE_FORMATS(ROW)
#undef ROW

std::span<const FormatFamily* const> format_families() {
#define ROW(family) &family,
  static const FormatFamily* const families[] = {NIBBLE_FORMATS(ROW)};
#undef ROW
  return families;
}

}  // namespace nibble
