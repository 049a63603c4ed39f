// GPTQ (FORMATS.md §8.1): words along the input axis, so the word (r, o) of qweight is four bytes of output row o in
// canonical order. Zero points run along the outputs. Version 1 stores them minus one, subtracted from whole words, so
// that borrows cross nibbles: the same whole-word addition undoes it. Columns are never permuted; with act-order the
// group of a column stands in g_idx.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "nibble/base/check.h"
#include "nibble/checkpoint/conventions/claim.h"
#include "nibble/checkpoint/conventions/part_reader.h"
#include "nibble/checkpoint/conventions/stored_formats.h"
#include "nibble/checkpoint/conventions/word_packed.h"

namespace nibble {
namespace {

using word_packed::kIndex;
using word_packed::kScales;
using word_packed::kWeight;
using word_packed::kZeros;

constexpr std::array<std::string_view, 4> kSuffixes = {kWeight, kZeros, kScales, kIndex};
constexpr std::array<std::string_view, 4> kMethods = {"gptq", "gptqmodel", "auto-round", "auto_round"};
constexpr uint32_t kMinusOne = 1;                          // Weight::variant: zero points of version 1
constexpr std::array<uint64_t, 4> kWidths = {2, 3, 4, 8};  // that the field has written

// Adds one to every field of `bits` bits, with carries between them.
uint32_t undo_minus_one(uint32_t word, uint64_t bits) { return word + (bits == 4 ? 0x11111111U : 0x01010101U); }

class Gptq final : public Convention {
 public:
  std::string_view name() const override { return "gptq"; }
  std::span<const std::string_view> methods() const override { return kMethods; }
  std::span<const std::string_view> suffixes() const override { return kSuffixes; }

  void claim(const ModuleParts& module, const ReadContext& context, std::vector<Weight>* weights,
             std::vector<bool>* used) const override {
    if (module.find(kWeight) < 0 && module.find(kZeros) < 0) return;
    const QuantHints& hints = context.hints;
    if (hints.method == "awq" && !hints.checkpoint_format.empty() && hints.checkpoint_format != "gemm") return;
    Claim claim(*this, module, context, weights, used);
    const auto parts = word_packed_parts(&claim);
    if (!parts || parts->weight_cols != parts->out) return;  // words along the outputs: AWQ's
    claim_parts(&claim, *parts);
  }

  bool rows_contiguous(const Weight& /*weight*/) const override { return false; }

  EncodedMatrix read(const Checkpoint& checkpoint, const Weight& weight, uint64_t slice, uint64_t row_begin,
                     uint64_t rows) const override;

 private:
  // 0 if the module was refused.
  static uint64_t bits_of(Claim* claim, const WordPacked& parts, const DeclaredSizes* declared);
  static std::optional<uint32_t> variant_of(Claim* claim);
  void claim_parts(Claim* claim, const WordPacked& parts) const;
};

// The zero points tell the width: they have `bits` bits for each output.
uint64_t Gptq::bits_of(Claim* claim, const WordPacked& parts, const DeclaredSizes* declared) {
  uint64_t bits = 0;
  for (const uint64_t candidate : kWidths) {
    if (parts.zero_cols * 32 == parts.out * candidate) bits = candidate;
  }
  if (parts.out == 0 && declared != nullptr && declared->bits.size() == 1) bits = declared->bits[0];
  if (bits == 4 || bits == 8) return bits;
  Values values{{"bits", std::to_string(bits)}, {"outputs", std::to_string(parts.out)}};
  values.emplace_back("words_of_zero_points", std::to_string(parts.zero_cols));
  if (bits == 0) {
    claim->bad_shape(kZeros, kScales, "the zero points do not go with the outputs", std::move(values));
  } else {
    claim->refuse(
        "unsupported", kWeight,
        fmt::format("GPTQ of {} bits is not read here, only of 4 and 8; start from the unquantized checkpoint", bits),
        std::move(values));
  }
  return 0;
}

std::optional<uint32_t> Gptq::variant_of(Claim* claim) {
  const QuantHints& hints = claim->context().hints;
  const bool declared = std::find(kMethods.begin(), kMethods.end(), hints.method) != kMethods.end();
  if (!declared) {
    claim->warn(
        "config-contradiction", kWeight,
        "GPTQ tensors without GPTQ's settings: zero points are taken to be stored minus one (version 1); if the "
        "file is version 2, add \"checkpoint_format\": \"gptq_v2\" to its quantization_config");
    return kMinusOne;
  }
  if (hints.checkpoint_format.empty() || hints.checkpoint_format == "gptq") return kMinusOne;
  if (hints.checkpoint_format == "gptq_v2") return 0;
  claim->refuse("unsupported", kWeight,
                "checkpoint_format \"" + hints.checkpoint_format +
                    "\" is one kernel's layout and is not read here; convert the checkpoint to \"gptq\" or \"gptq_v2\"",
                {{"checkpoint_format", hints.checkpoint_format}});
  return std::nullopt;
}

void Gptq::claim_parts(Claim* claim, const WordPacked& parts) const {
  const DeclaredSizes* declared = claim->context().declared_for(kMethods);
  const auto variant = variant_of(claim);
  if (!variant) return;
  const uint64_t bits = bits_of(claim, parts, declared);
  if (bits == 0) return;
  const uint64_t cols = parts.weight_rows * (32 / bits);
  const auto group = word_packed_group(cols, parts.groups, declared);
  if (!group) {
    refuse_groups(claim, cols, parts.groups, declared);
    return;
  }
  const StoredTensor* index = claim->get(kIndex);
  if (index == nullptr && claim->context().hints.desc_act.value_or(false)) {
    claim->lacks(kWeight, kIndex);
    return;
  }
  if (index != nullptr && (index->dtype != Dtype::kI32 || index->shape != std::vector<uint64_t>{cols})) {
    claim->bad_shape(kIndex, kWeight, "a group index must be I32, one for each column",
                     {{"columns", std::to_string(cols)}});
    return;
  }
  const ScaleType type = scale_type_of(claim->get(kScales)->dtype);
  claim->add(claim->name_of("weight"), int_format(bits, *group, type, true), {parts.out, cols}, *variant);
  claim->attach(PartKind::kCodes, kWeight);
  claim->attach(PartKind::kScales, kScales);
  claim->attach(PartKind::kZeros, kZeros);
  claim->attach(PartKind::kGroupIndex, kIndex);
}

EncodedMatrix Gptq::read(const Checkpoint& checkpoint, const Weight& weight, uint64_t slice, uint64_t row_begin,
                         uint64_t rows) const {
  NIBBLE_CHECK(slice == 0 && row_begin + rows <= weight.rows());
  const uint64_t bits = weight.format.code_bits();
  const uint64_t per_word = 32 / bits;
  EncodedMatrix out = EncodedMatrix::make(weight.format, rows, weight.cols());
  const std::vector<uint32_t> codes = read_words(checkpoint, *stored_part(checkpoint, weight, PartKind::kCodes));
  const uint64_t word_rows = weight.cols() / per_word;
  const uint64_t row_bytes = weight.format.code_row_bytes(weight.cols());
  const uint32_t flip = bits == 8 ? 0x80808080U : 0;  // offset binary to two's complement
  constexpr uint64_t kTile = 16;                      // words of one cache line: each line is read once
  for (uint64_t tile = 0; tile < rows; tile += kTile) {
    for (uint64_t w = 0; w < word_rows; ++w) {
      for (uint64_t r = tile; r < std::min(tile + kTile, rows); ++r) {
        const uint32_t word = codes[w * weight.rows() + row_begin + r] ^ flip;
        std::memcpy(out.codes.data() + r * row_bytes + w * 4, &word, 4);
      }
    }
  }
  read_turned_scales(checkpoint, weight, row_begin, &out);
  const std::vector<uint32_t> zeros = read_words(checkpoint, *stored_part(checkpoint, weight, PartKind::kZeros));
  const uint64_t groups = weight.format.scale_cols(weight.cols());
  for (uint64_t r = 0; r < rows; ++r) {
    const uint64_t row = row_begin + r;
    for (uint64_t g = 0; g < groups; ++g) {
      uint32_t word = zeros[g * (weight.rows() / per_word) + row / per_word];
      if (weight.variant == kMinusOne) word = undo_minus_one(word, bits);
      out.zeros[r * groups + g] = canonical_zero(word >> (row % per_word * bits), bits);
    }
  }
  if (const StoredTensor* index = stored_part(checkpoint, weight, PartKind::kGroupIndex)) {
    out.column_group = read_group_index(checkpoint, *index, groups, weight.format.block_cols);
  }
  return out;
}

}  // namespace

const Convention& gptq() {
  static const Gptq convention;
  return convention;
}

}  // namespace nibble
