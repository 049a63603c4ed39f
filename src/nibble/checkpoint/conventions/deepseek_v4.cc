// DeepSeek-V4 as released (FORMATS.md §6.3): X.weight with X.scale, F8_E8M0. An I8 weight holds two E2M1 elements a
// byte and a scale for 32 columns of a row; an E4M3 weight has a scale for each 128 x 128 block (V4.1: 32 x 32). The
// vendor's own files of V3 look alike with F32 scales.
#include <array>

#include "nibble/checkpoint/conventions/byte_weights.h"
#include "nibble/checkpoint/conventions/claim.h"
#include "nibble/checkpoint/conventions/fp4_weights.h"

namespace nibble {
namespace {

constexpr std::array<std::string_view, 2> kSuffixes = {"weight", "scale"};
constexpr std::array<std::string_view, 1> kMethods = {"fp8"};
constexpr std::array<std::pair<uint64_t, uint64_t>, 2> kBlocks = {{{128, 128}, {32, 32}}};

class DeepseekV4 final : public Convention {
 public:
  std::string_view name() const override { return "deepseek-v4"; }
  std::span<const std::string_view> methods() const override { return kMethods; }
  std::span<const std::string_view> suffixes() const override { return kSuffixes; }

  void claim(const ModuleParts& module, const ReadContext& context, std::vector<Weight>* weights,
             std::vector<bool>* used) const override {
    Claim claim(*this, module, context, weights, used);
    const StoredTensor* weight = claim.get("weight");
    const StoredTensor* scale = claim.get("scale");
    if (weight == nullptr || scale == nullptr) return;
    if (weight->dtype == Dtype::kF8E4M3) {
      claim_byte_weight(&claim, {"weight", "scale", "", ""}, claim.name_of("weight"),
                        {context.declared_for(kMethods), kBlocks});
    } else if (weight->dtype == Dtype::kI8 || weight->dtype == Dtype::kU8 || weight->dtype == Dtype::kF4) {
      claim_fp4_weight(&claim, {"weight", "scale", "", ""}, claim.name_of("weight"));
    }
  }

  bool rows_contiguous(const Weight& weight) const override { return weight.row_order == RowOrder::kPlain; }

  EncodedMatrix read(const Checkpoint& checkpoint, const Weight& weight, uint64_t slice, uint64_t row_begin,
                     uint64_t rows) const override {
    return read_byte_weight(checkpoint, weight, slice, row_begin, rows);
  }
};

}  // namespace

const Convention& deepseek_v4() {
  static const DeepseekV4 convention;
  return convention;
}

}  // namespace nibble
