// AWQ, version gemm (FORMATS.md §8.2): words along the output axis, and within a word the outputs in the order
// 0 2 4 6 1 3 5 7. Zero points are packed the same way and stored as they are; groups are consecutive columns.
#include <algorithm>
#include <array>

#include "nibble/base/check.h"
#include "nibble/checkpoint/conventions/claim.h"
#include "nibble/checkpoint/conventions/stored_formats.h"
#include "nibble/checkpoint/conventions/word_packed.h"

namespace nibble {
namespace {

using word_packed::kScales;
using word_packed::kWeight;
using word_packed::kZeros;

constexpr std::array<std::string_view, 3> kSuffixes = {kWeight, kZeros, kScales};
constexpr std::array<std::string_view, 3> kMethods = {"awq", "auto-round", "auto_round"};
constexpr uint64_t kPerWord = 8;
// Output 8c + j lies in this nibble of word c: the inverse of the order above.
constexpr std::array<uint32_t, kPerWord> kNibbleOf = {0, 4, 1, 5, 2, 6, 3, 7};

uint32_t field(uint32_t word, uint64_t output) { return (word >> (kNibbleOf[output % kPerWord] * 4)) & 0xF; }

class Awq final : public Convention {
 public:
  std::string_view name() const override { return "awq"; }
  std::span<const std::string_view> methods() const override { return kMethods; }
  std::span<const std::string_view> suffixes() const override { return kSuffixes; }

  void claim(const ModuleParts& module, const ReadContext& context, std::vector<Weight>* weights,
             std::vector<bool>* used) const override {
    if (module.find(kWeight) < 0) return;
    Claim claim(*this, module, context, weights, used);
    if (claim.get(kWeight) == nullptr) return;
    const std::string& version = context.hints.checkpoint_format;
    if (context.hints.method == "awq" && !version.empty() && version != "gemm") {
      claim.refuse("unsupported", kWeight,
                   "AWQ version \"" + version +
                       "\" is another layout and is not read here, only \"gemm\"; convert the "
                       "checkpoint, or start from the unquantized one",
                   {{"version", version}});
      return;
    }
    if (const auto parts = word_packed_parts(&claim)) claim_parts(&claim, *parts);
  }

  bool rows_contiguous(const Weight& /*weight*/) const override { return false; }

  EncodedMatrix read(const Checkpoint& checkpoint, const Weight& weight, uint64_t slice, uint64_t row_begin,
                     uint64_t rows) const override;

 private:
  void claim_parts(Claim* claim, const WordPacked& parts) const;
};

void Awq::claim_parts(Claim* claim, const WordPacked& parts) const {
  if (parts.weight_cols * kPerWord != parts.out || parts.zero_cols * kPerWord != parts.out) {
    claim->bad_shape(
        kWeight, kScales,
        "neither GPTQ's words along the inputs (one column an output) nor AWQ's along the outputs (one column "
        "for 8 outputs)",
        {{"outputs", std::to_string(parts.out)}, {"words", std::to_string(parts.weight_cols)}});
    return;
  }
  const uint64_t cols = parts.weight_rows;
  const DeclaredSizes* declared = claim->context().declared_for(kMethods);
  const auto group = word_packed_group(cols, parts.groups, declared);
  if (!group) {
    refuse_groups(claim, cols, parts.groups, declared);
    return;
  }
  const ScaleType type = scale_type_of(claim->get(kScales)->dtype);
  claim->add(claim->name_of("weight"), int_format(4, *group, type, true), {parts.out, cols});
  claim->attach(PartKind::kCodes, kWeight);
  claim->attach(PartKind::kScales, kScales);
  claim->attach(PartKind::kZeros, kZeros);
}

EncodedMatrix Awq::read(const Checkpoint& checkpoint, const Weight& weight, uint64_t slice, uint64_t row_begin,
                        uint64_t rows) const {
  NIBBLE_CHECK(slice == 0 && row_begin + rows <= weight.rows());
  const uint64_t cols = weight.cols();
  const uint64_t word_cols = weight.rows() / kPerWord;
  EncodedMatrix out = EncodedMatrix::make(weight.format, rows, cols);
  const std::vector<uint32_t> codes = read_words(checkpoint, *stored_part(checkpoint, weight, PartKind::kCodes));
  const uint64_t row_bytes = weight.format.code_row_bytes(cols);
  for (uint64_t k = 0; k < cols; ++k) {
    for (uint64_t r = 0; r < rows; ++r) {
      const uint64_t row = row_begin + r;
      const uint32_t code = field(codes[k * word_cols + row / kPerWord], row);
      out.codes[r * row_bytes + k / 2] |= std::byte(static_cast<uint8_t>(code << (k % 2 * 4)));
    }
  }
  read_turned_scales(checkpoint, weight, row_begin, &out);
  const std::vector<uint32_t> zeros = read_words(checkpoint, *stored_part(checkpoint, weight, PartKind::kZeros));
  const uint64_t groups = weight.format.scale_cols(cols);
  for (uint64_t r = 0; r < rows; ++r) {
    const uint64_t row = row_begin + r;
    for (uint64_t g = 0; g < groups; ++g) {
      out.zeros[r * groups + g] = static_cast<uint8_t>(field(zeros[g * word_cols + row / kPerWord], row));
    }
  }
  return out;
}

}  // namespace

const Convention& awq() {
  static const Awq convention;
  return convention;
}

}  // namespace nibble
