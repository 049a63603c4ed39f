// gpt-oss' MXFP4 (FORMATS.md §5): a stack of experts as "NAME_blocks" U8 (E, N, K/32, 16) and "NAME_scales" U8
// (E, N, K/32), already (N, K). In memory that is the canonical array, since byte b of block g holds columns 32g + 2b
// and 32g + 2b + 1. Gate and up rows alternate. The vendor's own files say ".blocks" and ".scales".
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "nibble/base/error.h"
#include "nibble/base/strings.h"
#include "nibble/checkpoint/conventions/claim.h"
#include "nibble/checkpoint/conventions/config_writer.h"
#include "nibble/checkpoint/conventions/part_reader.h"
#include "nibble/checkpoint/conventions/rows.h"
#include "nibble/checkpoint/conventions/stored_formats.h"

namespace nibble {
namespace {

constexpr std::array<std::string_view, 4> kSuffixes = {"_blocks", "_scales", "blocks", "scales"};
constexpr std::array<std::string_view, 1> kMethods = {"mxfp4"};
constexpr uint64_t kBlockBytes = 16;
constexpr uint64_t kBlockCols = 32;
// What the released models keep; consumers read `*` as "anything".
constexpr std::array<const char*, 4> kReleasedKept = {"model.layers.*.self_attn", "model.layers.*.mlp.router",
                                                      "model.embed_tokens", "lm_head"};

class GptOss final : public Convention {
 public:
  std::string_view name() const override { return "gpt-oss"; }
  std::span<const std::string_view> methods() const override { return kMethods; }
  std::span<const std::string_view> suffixes() const override { return kSuffixes; }

  void claim(const ModuleParts& module, const ReadContext& context, std::vector<Weight>* weights,
             std::vector<bool>* used) const override {
    Claim claim(*this, module, context, weights, used);
    claim_pair(&claim, "_blocks", "_scales");
    claim_pair(&claim, "blocks", "scales");
  }

  bool rows_contiguous(const Weight& /*weight*/) const override { return true; }

  EncodedMatrix read(const Checkpoint& checkpoint, const Weight& weight, uint64_t slice, uint64_t row_begin,
                     uint64_t rows) const override {
    return read_canonical(checkpoint, weight, slice, row_begin, rows);
  }

  bool can_write(const Format& format) const override { return format.name == mxfp4_format().name; }
  ExpertForm expert_form(std::string_view /*family*/) const override { return ExpertForm::kFusedInterleaved; }
  bool is_own_layout_of(std::string_view family, const Format& format) const override {
    return family == "gpt_oss" && can_write(format);
  }

  // Loaders know the fused and interleaved stacks as parameters of that one model.
  std::string readers_note(std::string_view model_type) const override {
    if (model_type == "gpt_oss") return "";
    return "layout gpt-oss: transformers, vLLM and SGLang load it for model type gpt_oss alone; for " +
           printable(model_type) +
           " only programs that know it by the names of its tensors do, as nibble does; --layout "
           "compressed-tensors is what the others load";
  }

  std::vector<PartDecl> declare(const WriteRequest& request) const override {
    if (request.shape.size() < 3 || request.shape.back() % kBlockCols != 0) {
      throw Error("this layout holds stacks of experts whose columns fill whole blocks, and nothing else")
          .tensor(request.name)
          .value("shape", shape_text(request.shape))
          .value("block", kBlockCols)
          .way_out("--layout compressed-tensors, which holds any matrix")
          .way_out("--keep this tensor as it is");
    }
    const RequestShape shape = request_shape(request);
    const uint64_t blocks = shape.cols / kBlockCols;
    return {
        {PartKind::kCodes, {request.name + "_blocks", Dtype::kU8, stacked(request, {shape.rows, blocks, kBlockBytes})}},
        {PartKind::kScales, {request.name + "_scales", Dtype::kU8, stacked(request, {shape.rows, blocks})}}};
  }

  std::vector<PartRun> emit(const WriteRequest& request, uint64_t slice, uint64_t row_begin,
                            const EncodedView& rows) const override {
    return {code_run(request, 0, slice, row_begin, rows), scale_run(request, 1, slice, row_begin, rows)};
  }

  std::vector<std::pair<std::string, std::string>> write_config(const ConfigRequest& request,
                                                                Json* config) const override {
    replace_quantization(config, {{"modules_to_not_convert", kept_list(request)}, {"quant_method", "mxfp4"}});
    return {};
  }

 private:
  static void claim_pair(Claim* claim, std::string_view blocks_suffix, std::string_view scales_suffix) {
    const StoredTensor* blocks = claim->get(blocks_suffix);
    const StoredTensor* scales = claim->get(scales_suffix);
    const bool byte_scales = scales != nullptr && (scales->dtype == Dtype::kU8 || scales->dtype == Dtype::kF8E8M0);
    if (blocks == nullptr) {
      // Float "scales" are other layouts' (or a parameter of that name).
      if (byte_scales) claim->lacks(scales_suffix, blocks_suffix);
      return;
    }
    if (blocks->dtype != Dtype::kU8 || blocks->shape.size() < 3) return;
    if (scales == nullptr) {
      claim->lacks(blocks_suffix, scales_suffix);
      return;
    }
    if (!claim->only_one(blocks_suffix, "") || !claim->only_one(blocks_suffix, "weight")) return;
    std::vector<uint64_t> shape(blocks->shape.begin(), blocks->shape.end() - 1);
    if (blocks->shape.back() != kBlockBytes || !byte_scales || scales->shape != shape) {
      claim->bad_shape(scales_suffix, blocks_suffix,
                       "blocks must be U8 (…, rows, columns / 32, 16) and scales U8 or F8_E8M0 (…, rows, columns / 32)",
                       {{"expected", shape_text(shape)}});
      return;
    }
    shape.back() *= kBlockCols;
    claim->add(claim->name_of(""), mxfp4_format(), std::move(shape));
    claim->attach(PartKind::kCodes, blocks_suffix);
    claim->attach(PartKind::kScales, scales_suffix);
  }

  // The source's own list where it speaks this convention's language, else the released one; whatever else stays as it
  // is comes behind, by name.
  static Json kept_list(const ConfigRequest& request) {
    Json list = source_list(request);
    for (const std::string& module : request.kept) {
      const bool covered = std::any_of(list.begin(), list.end(), [&module](const Json& entry) {
        return entry.is_string() && glob_match(entry.get<std::string>() + "*", module);
      });
      if (!covered) list.push_back(module);
    }
    return list;
  }

  static Json source_list(const ConfigRequest& request) {
    const bool own_family = request.source_family == "gpt_oss";
    if (request.source_config != nullptr && request.source_config->is_object()) {
      const auto settings = request.source_config->find("quantization_config");
      if (settings != request.source_config->end() && settings->is_object() &&
          (own_family || settings->value("quant_method", Json()) == "mxfp4")) {
        const auto list = settings->find("modules_to_not_convert");
        if (list != settings->end() && list->is_array()) return *list;
      }
    }
    return own_family ? Json(kReleasedKept) : Json::array();
  }
};

}  // namespace

const Convention& gpt_oss() {
  static const GptOss convention;
  return convention;
}

}  // namespace nibble
