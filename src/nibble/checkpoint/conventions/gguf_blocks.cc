// GGUF's block types (FORMATS.md §9.2): a row is a sequence of blocks that hold codes and scales together. Reading
// takes them apart into the canonical arrays; ggml's nibble order (element j low, j + 16 high) becomes pairs of
// neighbours. NVFP4 has its tensor-level scale in a tensor of its own, NAME.scale (one, or one for each expert). Types
// that are not decoded here are listed under their name and copied.
#include <algorithm>
#include <array>
#include <cstring>

#include "nibble/base/check.h"
#include "nibble/base/error.h"
#include "nibble/checkpoint/conventions/claim.h"
#include "nibble/checkpoint/conventions/gguf_unpack.h"
#include "nibble/checkpoint/conventions/part_reader.h"
#include "nibble/checkpoint/conventions/stored_formats.h"

namespace nibble {
namespace {

constexpr std::array<std::string_view, 3> kSuffixes = {"weight", "scale", "input_scale"};

class GgufBlocks final : public Convention {
 public:
  std::string_view name() const override { return "gguf"; }
  std::span<const std::string_view> methods() const override { return {}; }
  std::span<const std::string_view> suffixes() const override { return kSuffixes; }

  void claim(const ModuleParts& module, const ReadContext& context, std::vector<Weight>* weights,
             std::vector<bool>* used) const override {
    Claim claim(*this, module, context, weights, used);
    for (const auto& [suffix, tensor] : module.parts) {
      const StoredTensor* stored = claim.get(suffix);
      if (stored != nullptr && stored->dtype == Dtype::kGgufBlock) claim_block(&claim, suffix, *stored);
    }
  }

  bool rows_contiguous(const Weight& weight) const override { return weight.row_order == RowOrder::kPlain; }

  EncodedMatrix read(const Checkpoint& checkpoint, const Weight& weight, uint64_t slice, uint64_t row_begin,
                     uint64_t rows) const override;

 private:
  void claim_block(Claim* claim, std::string_view suffix, const StoredTensor& tensor) const;
};

void GgufBlocks::claim_block(Claim* claim, std::string_view suffix, const StoredTensor& tensor) const {
  const GgufUnpacker* unpacker = gguf_unpacker(tensor.gguf_type);
  if (unpacker == nullptr) {
    const GgufType* type = gguf_type(tensor.gguf_type);
    claim->add(tensor.name, opaque_format(type == nullptr ? "unknown" : type->name), tensor.shape).opaque = true;
    claim->attach(PartKind::kCodes, suffix);
    return;
  }
  const Format format = unpacker->format();
  const StoredTensor* scale = suffix == "weight" && format.two_level ? claim->get("scale") : nullptr;
  if (scale != nullptr) {
    uint64_t slices = 1;
    for (size_t i = 0; i + 2 < tensor.shape.size(); ++i) slices *= tensor.shape[i];
    const uint64_t count = element_count(*scale);
    if (scale->dtype != Dtype::kF32 || (count != 1 && count != slices)) {
      claim->bad_shape("scale", suffix, "the scale of this tensor must be F32, one or one for each expert",
                       {{"experts", std::to_string(slices)}, {"scales", std::to_string(count)}});
      return;
    }
  }
  claim->add(tensor.name, format, tensor.shape);
  claim->attach(PartKind::kCodes, suffix);
  if (suffix != "weight" || !format.two_level) return;
  claim->attach(PartKind::kSecondScale, "scale");
  claim->attach(PartKind::kInputScale, "input_scale");
}

EncodedMatrix GgufBlocks::read(const Checkpoint& checkpoint, const Weight& weight, uint64_t slice, uint64_t row_begin,
                               uint64_t rows) const {
  NIBBLE_CHECK(slice < weight.slices() && row_begin + rows <= weight.rows());
  const StoredTensor& tensor = *stored_part(checkpoint, weight, PartKind::kCodes);
  if (weight.opaque) {
    throw Error("this block type is not decoded here")
        .file(checkpoint.file_of(tensor))
        .tensor(tensor.name)
        .value("type", weight.format.name)
        .way_out("convert the file to a type that is read: F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q4_K, MXFP4 or NVFP4");
  }
  const GgufUnpacker& unpacker = *gguf_unpacker(tensor.gguf_type);
  const GgufType& type = *gguf_type(tensor.gguf_type);
  const uint64_t blocks = weight.cols() / type.block_elements;
  EncodedMatrix out = EncodedMatrix::make(weight.format, rows, weight.cols());
  std::vector<std::byte> stored(rows * blocks * type.block_bytes);
  read_part_rows(checkpoint, tensor, blocks * type.block_bytes, slice * weight.rows() + row_begin, rows, stored.data(),
                 blocks * type.block_bytes);
  // Rows are whole blocks in every array, so all rows are one run of blocks.
  for (uint64_t b = 0; b < rows * blocks; ++b) unpacker.unpack(stored.data() + b * type.block_bytes, b, &out);
  if (weight.format.two_level) {
    out.tensor_scale.level = SecondLevel::kMultiply;
    const StoredTensor* second = stored_part(checkpoint, weight, PartKind::kSecondScale);
    if (second != nullptr) out.tensor_scale.value = read_float(checkpoint, *second, slice);
  }
  return out;
}

}  // namespace

const Convention& gguf_blocks() {
  static const GgufBlocks convention;
  return convention;
}

}  // namespace nibble
