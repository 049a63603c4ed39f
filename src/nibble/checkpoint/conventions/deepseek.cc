// FP8 of the DeepSeek family (FORMATS.md §6): `weight` E4M3 (or a fused stack "experts.gate_up_proj") and
// `weight_scale_inv`, which in spite of its name is multiplied by. Scales are F32, BF16 or E8M0, one for each 128 x 128
// block (partial at the edges), or U8 E8M0 for 32 columns of a row.
#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>

#include "nibble/checkpoint/conventions/byte_weights.h"
#include "nibble/checkpoint/conventions/claim.h"
#include "nibble/checkpoint/conventions/config_writer.h"
#include "nibble/checkpoint/conventions/rows.h"
#include "nibble/numerics/decode.h"

namespace nibble {
namespace {

constexpr std::array<std::string_view, 6> kSuffixes = {"weight",     "weight_scale_inv",  "input_scale",
                                                       "_scale_inv", "_weight_scale_inv", "_input_scale"};
constexpr std::array<std::string_view, 2> kMethods = {"fp8", "mxfp8"};
constexpr std::array<ByteNames, 3> kNames = {{{"weight", "weight_scale_inv", "input_scale", ""},
                                              {"", "_scale_inv", "_input_scale", ""},
                                              {"", "_weight_scale_inv", "_input_scale", ""}}};
constexpr std::string_view kPowerOfTwoRule = "fp8.ue8m0";

class Deepseek final : public Convention {
 public:
  std::string_view name() const override { return "deepseek"; }
  std::span<const std::string_view> methods() const override { return kMethods; }
  std::span<const std::string_view> suffixes() const override { return kSuffixes; }

  void claim(const ModuleParts& module, const ReadContext& context, std::vector<Weight>* weights,
             std::vector<bool>* used) const override {
    Claim claim(*this, module, context, weights, used);
    for (const ByteNames& names : kNames) {
      const StoredTensor* weight = claim.get(names.weight);
      if (weight == nullptr || weight->dtype != Dtype::kF8E4M3 || claim.get(names.scale) == nullptr) continue;
      claim_byte_weight(&claim, names, claim.name_of(names.weight),
                        {context.declared_for(kMethods), {&kUsualBlock, 1}});
    }
  }

  bool rows_contiguous(const Weight& weight) const override { return weight.row_order == RowOrder::kPlain; }

  EncodedMatrix read(const Checkpoint& checkpoint, const Weight& weight, uint64_t slice, uint64_t row_begin,
                     uint64_t rows) const override {
    return read_byte_weight(checkpoint, weight, slice, row_begin, rows);
  }

  bool can_write(const Format& format) const override {
    return format.element == Element::kE4M3 && format.block_rows == 128 && format.block_cols == 128 &&
           format.scale != ScaleType::kNone && format.scale != ScaleType::kE4M3;
  }
  bool is_own_layout_of(std::string_view family, const Format& format) const override {
    return family == "deepseek_v3" && can_write(format);
  }

  // Scales are F32 even where all are powers of two: that is how DeepSeek-V3.1 and V3.2 were released. Those of 16
  // bits, which come from other layouts and writers, are widened as well: float32 holds each of them.
  std::vector<PartDecl> declare(const WriteRequest& request) const override {
    const RequestShape shape = request_shape(request);
    const bool named = request.name != module_of(request.name);
    return {{PartKind::kCodes, {request.name, Dtype::kF8E4M3, request.shape}},
            {PartKind::kScales,
             {named ? join_name(module_of(request.name), "weight_scale_inv") : request.name + "_scale_inv", Dtype::kF32,
              stacked(request, {request.format.scale_rows(shape.rows), request.format.scale_cols(shape.cols)})}}};
  }

  std::vector<PartRun> emit(const WriteRequest& request, uint64_t slice, uint64_t row_begin,
                            const EncodedView& rows) const override {
    PartRun scales = scale_run(request, 1, slice, row_begin, rows);
    if (request.format.scale != ScaleType::kF32) widen(request.format.scale, &scales);
    return {code_run(request, 0, slice, row_begin, rows), std::move(scales)};
  }

  std::vector<std::pair<std::string, std::string>> write_config(const ConfigRequest& request,
                                                                Json* config) const override {
    Json settings;
    settings["activation_scheme"] = "dynamic";
    settings["fmt"] = "e4m3";
    settings["quant_method"] = "fp8";
    const bool powers = request.all_by_rule && request.rule == kPowerOfTwoRule;
    if (powers || request.format.scale == ScaleType::kE8M0) settings["scale_fmt"] = "ue8m0";
    settings["weight_block_size"] = {request.format.block_rows, request.format.block_cols};
    // As releases of such folders list them: names in full, norms too.
    std::vector<std::string> kept = request.kept;
    kept.insert(kept.end(), request.norms.begin(), request.norms.end());
    std::ranges::sort(kept);
    settings["modules_to_not_convert"] = kept;
    replace_quantization(config, std::move(settings));
    return {};
  }

 private:
  static void widen(ScaleType type, PartRun* scales) {
    const uint64_t width = scale_type_bytes(type);
    std::vector<float> values(scales->bytes.size() / width);
    scale_values(type, scales->bytes.data(), values.size(), values.data());
    scales->offset = scales->offset / width * sizeof(float);
    scales->bytes.resize(values.size() * sizeof(float));
    if (!values.empty()) std::memcpy(scales->bytes.data(), values.data(), scales->bytes.size());
  }
};

}  // namespace

const Convention& deepseek() {
  static const Deepseek convention;
  return convention;
}

}  // namespace nibble
