// q4_1 and q4_k of GGUF: unsigned nibbles with a scale and a minimum for each 32 columns, value = code * scale + min.
// Read only. A q4_k super-block of 256 stores 6-bit scales and minima under two binary16 numbers; the reader multiplies
// them out (exactly, into float32), so only the bits of the container tell the two formats apart.
#include "nibble/numerics/format.h"

namespace nibble {
namespace {

std::optional<Format> parse_q4_1(std::string_view name) {
  if (name != "q4_1") return std::nullopt;
  return Format{.name = std::string(name),
                .element = Element::kUint4,
                .scale = ScaleType::kF16,
                .block_cols = 32,
                .zero = ZeroPoint::kMin};
}

std::optional<Format> parse_q4_k(std::string_view name) {
  if (name != "q4_k") return std::nullopt;
  return Format{.name = std::string(name),
                .element = Element::kUint4,
                .scale = ScaleType::kF32,
                .block_cols = 32,
                .zero = ZeroPoint::kMin,
                .container_block_bits = 16};  // (2 * 16 + 8 * 12) / 8 sub-blocks
}

// The encoders of these formats are searches of their own library; 0 = no reference.
double typical_rel_rmse(const Format&) { return 0; }

}  // namespace

extern const FormatFamily kQ4Min, kQ4K;
const FormatFamily kQ4Min = {"q4_1", "GGUF Q4_1 (read only)", "", false, parse_q4_1, typical_rel_rmse};
const FormatFamily kQ4K = {"q4_k", "GGUF Q4_K (read only)", "", false, parse_q4_k, typical_rel_rmse};

}  // namespace nibble
