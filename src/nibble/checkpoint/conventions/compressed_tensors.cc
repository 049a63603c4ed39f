// compressed-tensors (FORMATS.md §4): suffixes weight_packed, weight_scale, weight_shape … behind a module's name. The
// types tell the formats apart: I32 words are packed integers, U8 pairs are four-bit floats (with weight_global_scale,
// which divides, or with E8M0 scales), an F8 or I8 `weight` has one scale a tensor, row, group or block.
#include <array>
#include <nlohmann/json.hpp>

#include "nibble/base/strings.h"
#include "nibble/checkpoint/conventions/byte_weights.h"
#include "nibble/checkpoint/conventions/claim.h"
#include "nibble/checkpoint/conventions/compressed_tensors_config.h"
#include "nibble/checkpoint/conventions/fp4_weights.h"
#include "nibble/checkpoint/conventions/packed_ints.h"
#include "nibble/checkpoint/conventions/rows.h"

namespace nibble {
namespace {

constexpr std::array<std::string_view, 14> kSuffixes = {"weight",
                                                        "weight_packed",
                                                        "weight_scale",
                                                        "weight_shape",
                                                        "weight_zero_point",
                                                        "weight_g_idx",
                                                        "weight_global_scale",
                                                        "input_global_scale",
                                                        "input_scale",
                                                        "input_zero_point",
                                                        "compressed",
                                                        "bitmask",
                                                        "row_offsets",
                                                        "meta"};
constexpr std::array<std::string_view, 1> kMethods = {"compressed-tensors"};
constexpr Fp4Names kFp4{"weight_packed", "weight_scale", "weight_global_scale", "input_global_scale"};
constexpr ByteNames kBytes{"weight", "weight_scale", "input_scale", "weight_zero_point"};

bool is_pairs(const Format& format) { return format.element == Element::kE2M1; }

class CompressedTensors final : public Convention {
 public:
  std::string_view name() const override { return "compressed-tensors"; }
  std::span<const std::string_view> methods() const override { return kMethods; }
  std::span<const std::string_view> suffixes() const override { return kSuffixes; }

  void claim(const ModuleParts& module, const ReadContext& context, std::vector<Weight>* weights,
             std::vector<bool>* used) const override {
    Claim claim(*this, module, context, weights, used);
    if (refuse_sparse(&claim)) return;
    const StoredTensor* packed = claim.get("weight_packed");
    if (packed == nullptr) {
      if (claim.get("weight") != nullptr && claim.get("weight_scale") != nullptr) claim_bytes(&claim);
      return;
    }
    if (!claim.only_one("weight_packed", "weight")) return;
    if (packed->dtype == Dtype::kI32) {
      claim_packed_ints(&claim, context.declared_for(kMethods));
    } else if (claim.get("weight_scale") == nullptr) {
      claim.lacks("weight_packed", "weight_scale");
    } else {
      claim_fp4_weight(&claim, kFp4, claim.name_of("weight"));
    }
  }

  bool rows_contiguous(const Weight& weight) const override { return weight.row_order == RowOrder::kPlain; }

  EncodedMatrix read(const Checkpoint& checkpoint, const Weight& weight, uint64_t slice, uint64_t row_begin,
                     uint64_t rows) const override {
    if (weight.part(PartKind::kShape) != nullptr) return read_packed_ints(checkpoint, weight, slice, row_begin, rows);
    if (is_pairs(weight.format)) {
      return read_fp4_weight(checkpoint, weight, slice, row_begin, rows, SecondLevel::kDivide);
    }
    return read_byte_weight(checkpoint, weight, slice, row_begin, rows);
  }

  bool can_write(const Format& format) const override { return compressed_tensors_format(format) != nullptr; }
  SecondLevel second_level() const override { return SecondLevel::kDivide; }
  std::vector<PartDecl> declare(const WriteRequest& request) const override;
  std::vector<PartRun> emit(const WriteRequest& request, uint64_t slice, uint64_t row_begin,
                            const EncodedView& rows) const override;
  std::vector<std::pair<std::string, std::string>> write_config(const ConfigRequest& request,
                                                                Json* config) const override {
    replace_quantization(config, compressed_tensors_config(request));
    return {};
  }

 private:
  // Formats of before 2025 that drop zeros; their parts hang off the weight's full name.
  static bool refuse_sparse(Claim* claim) {
    for (const std::string_view suffix : {"compressed", "bitmask", "row_offsets"}) {
      if (claim->get(suffix) != nullptr && ends_with(claim->name_of(""), "weight")) {
        claim->refuse("unsupported", suffix,
                      "sparse-bitmask: compressed sparse weights are not read here; decompress the checkpoint with the "
                      "library that wrote it");
        return true;
      }
    }
    if (claim->get("meta") != nullptr && claim->get("weight_packed") != nullptr) {
      claim->refuse(
          "unsupported", "weight_packed",
          "marlin-24: weights in the order of one kernel are not read here; decompress the checkpoint with the "
          "library that wrote it");
      return true;
    }
    return false;
  }

  static void claim_bytes(Claim* claim) {
    const StoredTensor& weight = *claim->get("weight");
    if (weight.dtype != Dtype::kF8E4M3 && weight.dtype != Dtype::kI8) return;
    if (looks_like_fp4(weight, *claim->get("weight_scale"))) return;  // another convention's
    claim_byte_weight(claim, kBytes, claim->name_of("weight"),
                      {claim->context().declared_for(kMethods), {&kUsualBlock, 1}});
  }
};

std::vector<PartDecl> CompressedTensors::declare(const WriteRequest& request) const {
  const Format& format = request.format;
  if (format.element == Element::kInt4) return declare_packed_ints(request);
  const RequestShape shape = request_shape(request);
  const std::string module = module_of(request.name);
  const std::vector<uint64_t> scale_shape =
      format.block_rows == 0 && request.shape.size() == 2
          ? std::vector<uint64_t>{1}
          : stacked(request, {format.scale_rows(shape.rows), format.scale_cols(shape.cols)});
  std::vector<PartDecl> parts;
  if (is_pairs(format)) {
    parts.push_back({PartKind::kCodes,
                     {join_name(module, "weight_packed"), Dtype::kU8,
                      stacked(request, {shape.rows, format.code_row_bytes(shape.cols)})}});
  } else {
    parts.push_back({PartKind::kCodes, {join_name(module, "weight"), Dtype::kF8E4M3, request.shape}});
  }
  parts.push_back({PartKind::kScales, {join_name(module, "weight_scale"), scale_dtype(format.scale), scale_shape}});
  if (format.two_level) {
    parts.push_back(
        {PartKind::kSecondScale, {join_name(module, "weight_global_scale"), Dtype::kF32, stacked(request, {1})}});
  }
  return parts;
}

std::vector<PartRun> CompressedTensors::emit(const WriteRequest& request, uint64_t slice, uint64_t row_begin,
                                             const EncodedView& rows) const {
  if (request.format.element == Element::kInt4) return emit_packed_ints(request, slice, row_begin, rows);
  std::vector<PartRun> runs{code_run(request, 0, slice, row_begin, rows)};
  // A scale for the whole matrix comes with every cut of it: one is enough.
  if (request.format.block_rows > 0 || row_begin == 0) runs.push_back(scale_run(request, 1, slice, row_begin, rows));
  if (request.format.two_level && row_begin == 0) runs.push_back(second_run(2, slice, rows, SecondLevel::kDivide));
  return runs;
}

}  // namespace

const Convention& compressed_tensors() {
  static const CompressedTensors convention;
  return convention;
}

}  // namespace nibble
