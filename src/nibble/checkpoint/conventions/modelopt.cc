// NVIDIA ModelOpt's exports (FORMATS.md §7): `weight` with `weight_scale`, and for NVFP4 `weight_scale_2`, a float32
// that multiplies. Fused stacks have the same parts as tails ("experts.gate_up_proj_weight_scale"). INT4 is packed
// along the rows, and stacks of (E, K, N) modules lie as these compute (modelopt_stacks.h). Weights whose input is
// scaled (pre_quant_scale) or that carry low-rank factors are listed and copied, but not decoded: their bytes alone are
// not the weight.
#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "nibble/base/error.h"
#include "nibble/checkpoint/conventions/byte_weights.h"
#include "nibble/checkpoint/conventions/claim.h"
#include "nibble/checkpoint/conventions/config_writer.h"
#include "nibble/checkpoint/conventions/fp4_weights.h"
#include "nibble/checkpoint/conventions/modelopt_int4.h"
#include "nibble/checkpoint/conventions/modelopt_stacks.h"
#include "nibble/checkpoint/conventions/rows.h"
#include "nibble/checkpoint/conventions/stored_formats.h"

namespace nibble {
namespace {

constexpr std::array<std::string_view, 10> kSuffixes = {
    "weight",          "weight_scale",    "weight_scale_2", "input_scale",     "pre_quant_scale",
    "svdquant_lora_a", "svdquant_lora_b", "_weight_scale",  "_weight_scale_2", "_input_scale"};
constexpr std::array<std::string_view, 3> kMethods = {"modelopt", "modelopt_fp4", "modelopt_mixed"};
constexpr Fp4Names kPlain{"weight", "weight_scale", "weight_scale_2", "input_scale"};
constexpr Fp4Names kFused{"", "_weight_scale", "_weight_scale_2", "_input_scale"};
constexpr uint32_t kTransposed = 1;  // Weight::variant
constexpr std::string_view kAlgorithm = "W4A16_NVFP4";
// The exporter's release whose layout is written; readers look for the name.
constexpr const char* kLayoutVersion = "0.47.0";

bool is_pair_type(Dtype dtype) { return dtype == Dtype::kU8 || dtype == Dtype::kI8 || dtype == Dtype::kF4; }

bool is_float_scale(const StoredTensor& scale) {
  return scale.dtype == Dtype::kF32 || scale.dtype == Dtype::kBF16 || scale.dtype == Dtype::kF16;
}

class Modelopt final : public Convention {
 public:
  std::string_view name() const override { return "modelopt"; }
  std::span<const std::string_view> methods() const override { return kMethods; }
  std::span<const std::string_view> suffixes() const override { return kSuffixes; }

  void claim(const ModuleParts& module, const ReadContext& context, std::vector<Weight>* weights,
             std::vector<bool>* used) const override {
    Claim claim(*this, module, context, weights, used);
    if (claim_scaled_input(&claim)) return;
    claim_pair(&claim, kPlain);
    claim_pair(&claim, kFused);
  }

  bool rows_contiguous(const Weight& weight) const override {
    return weight.row_order == RowOrder::kPlain && weight.variant != kTransposed;
  }
  EncodedMatrix read(const Checkpoint& checkpoint, const Weight& weight, uint64_t slice, uint64_t row_begin,
                     uint64_t rows) const override;

  bool can_write(const Format& format) const override { return format == nvfp4_format(); }
  // Modules that compute with (E, K, N) stay fused; the others are taken apart, as its export does.
  ExpertForm expert_form(std::string_view family) const override {
    return family == "gpt_oss" ? ExpertForm::kFusedInterleaved : ExpertForm::kPerExpert;
  }
  SecondLevel second_level() const override { return SecondLevel::kMultiply; }
  bool takes_whole_slices(const WriteRequest& request) const override { return request.transposed; }
  bool one_second_scale(const WriteRequest& request) const override { return request.transposed; }
  std::vector<PartDecl> declare(const WriteRequest& request) const override;
  std::vector<PartRun> emit(const WriteRequest& request, uint64_t slice, uint64_t row_begin,
                            const EncodedView& rows) const override;
  std::vector<std::pair<std::string, std::string>> write_config(const ConfigRequest& request,
                                                                Json* config) const override;

 private:
  static bool claim_scaled_input(Claim* claim);
  static void claim_pair(Claim* claim, const Fp4Names& names);
};

// What is behind the codes of a scaled weight: the format's name and the matrix' shape.
struct ScaledMatrix {
  std::string format;
  std::vector<uint64_t> shape;
};

std::optional<ScaledMatrix> scaled_matrix(const StoredTensor& weight, const StoredTensor* scale) {
  ScaledMatrix matrix{"", weight.shape};
  if (weight.shape.size() < 2) return std::nullopt;
  if (scale == nullptr) {
    if (is_pair_type(weight.dtype)) return std::nullopt;
    matrix.format = opaque_format(dtype_name(weight.dtype)).name;
  } else if (!is_float_scale(*scale)) {
    matrix.format = "nvfp4";
    if (weight.dtype != Dtype::kF4) matrix.shape.back() *= 2;
  } else if (weight.dtype == Dtype::kU8) {
    matrix.format = "int4";
    matrix.shape[matrix.shape.size() - 2] *= 2;
  } else {
    matrix.format = weight.dtype == Dtype::kI8 ? "int8" : "fp8";
  }
  return matrix;
}

// Value of W is not in the codes alone: W[o][k] = decoded[o][k] * pre_quant_scale[k], plus the low-rank product.
bool Modelopt::claim_scaled_input(Claim* claim) {
  const bool low_rank = claim->get("svdquant_lora_a") != nullptr || claim->get("svdquant_lora_b") != nullptr;
  const StoredTensor* weight = claim->get("weight");
  const StoredTensor* factors = claim->get("pre_quant_scale");
  if (weight == nullptr || (!low_rank && factors == nullptr)) return false;
  const auto matrix = scaled_matrix(*weight, claim->get("weight_scale"));
  if (!matrix) return false;
  if (factors != nullptr && element_count(*factors) != matrix->shape.back()) {
    claim->bad_shape(
        "pre_quant_scale", "weight", "each column of the weight needs one factor",
        {{"columns", std::to_string(matrix->shape.back())}, {"factors", std::to_string(element_count(*factors))}});
    return true;
  }
  claim->warn("scaled-input", factors != nullptr ? "pre_quant_scale" : "weight",
              low_rank ? "low-rank factors and factors of the columns belong to this weight and are not applied here: "
                         "its values cannot be checked or quantized again. Start from the unquantized checkpoint"
                       : "factors of the columns belong to this weight and are not applied here: its values cannot be "
                         "checked or quantized again. Start from the unquantized checkpoint");
  claim->add(claim->name_of("weight"), opaque_format(matrix->format + (low_rank ? "-svd" : "-awq")), matrix->shape)
      .opaque = true;
  claim->attach(PartKind::kCodes, "weight");
  claim->attach(PartKind::kScales, "weight_scale");
  claim->attach(PartKind::kSecondScale, "weight_scale_2");
  claim->attach(PartKind::kInputScale, "input_scale");
  claim->attach(PartKind::kPreQuantScale, "pre_quant_scale");
  claim->attach(PartKind::kOther, "svdquant_lora_a");
  claim->attach(PartKind::kOther, "svdquant_lora_b");
  return true;
}

void Modelopt::claim_pair(Claim* claim, const Fp4Names& names) {
  const StoredTensor* weight = claim->get(names.codes);
  const StoredTensor* scale = claim->get(names.scale);
  const StoredTensor* second = claim->get(names.second);
  if (weight == nullptr) {
    if (second != nullptr && scale != nullptr) claim->lacks(names.scale, names.codes);
    return;
  }
  if (scale == nullptr) {
    if (second != nullptr && is_pair_type(weight->dtype)) claim->lacks(names.second, names.scale);
    return;
  }
  std::string name = claim->name_of(names.codes);
  const DeclaredSizes* declared = claim->context().declared_for(kMethods);
  if (is_pair_type(weight->dtype)) {
    if (is_transposed_stack(*weight, *scale)) {
      claim_transposed_stack(claim, names, std::move(name), kTransposed);
    } else if (looks_like_fp4(*weight, *scale) || (scale->dtype == Dtype::kU8 && second != nullptr)) {
      claim_fp4_weight(claim, names, std::move(name));
    } else if (weight->dtype == Dtype::kU8 && is_float_scale(*scale)) {
      claim_modelopt_int4(claim, names, std::move(name), declared);
    } else if (declared != nullptr && weight->dtype == Dtype::kI8) {
      claim_byte_weight(claim, {names.codes, names.scale, names.input_scale, ""}, std::move(name),
                        {.declared = declared});
    }
    return;
  }
  // E4M3 with `weight_scale` is compressed-tensors' too and means the same there; only these exports keep block axes.
  const bool block_axes = scale->shape.size() == weight->shape.size() + 2;
  if (weight->dtype == Dtype::kF8E4M3 && (declared != nullptr || block_axes || names.codes.empty())) {
    claim_byte_weight(claim, {names.codes, names.scale, names.input_scale, ""}, std::move(name),
                      {.declared = declared});
  }
}

EncodedMatrix Modelopt::read(const Checkpoint& checkpoint, const Weight& weight, uint64_t slice, uint64_t row_begin,
                             uint64_t rows) const {
  if (weight.opaque) {
    const StoredTensor& tensor = *stored_part(checkpoint, weight, PartKind::kCodes);
    throw Error(weight.format.name +
                ": this weight is stored together with a scaling of its input (pre_quant_scale) or "
                "low-rank factors, and its codes alone are not the weight")
        .file(checkpoint.file_of(tensor))
        .tensor(tensor.name)
        .way_out("start from the unquantized checkpoint")
        .way_out("export again with an algorithm that scales weights only, such as NVFP4");
  }
  if (weight.format.element == Element::kInt4) return read_modelopt_int4(checkpoint, weight, slice, row_begin, rows);
  if (weight.variant == kTransposed) return read_transposed_stack(checkpoint, weight, slice, row_begin, rows);
  if (weight.format.element == Element::kE2M1) {
    return read_fp4_weight(checkpoint, weight, slice, row_begin, rows, SecondLevel::kMultiply);
  }
  return read_byte_weight(checkpoint, weight, slice, row_begin, rows);
}

std::vector<PartDecl> Modelopt::declare(const WriteRequest& request) const {
  if (request.transposed) return declare_transposed_stack(request, kFused);
  const RequestShape shape = request_shape(request);
  const bool fused = request.name == module_of(request.name);
  const Fp4Names& names = fused ? kFused : kPlain;
  const auto name = [&](std::string_view suffix) { return join_name(module_of(request.name), suffix); };
  const std::vector<uint64_t> stack(request.shape.begin(), request.shape.end() - 2);
  return {{PartKind::kCodes,
           {request.name, Dtype::kU8, stacked(request, {shape.rows, request.format.code_row_bytes(shape.cols)})}},
          {PartKind::kScales,
           {name(names.scale), Dtype::kF8E4M3, stacked(request, {shape.rows, request.format.scale_cols(shape.cols)})}},
          {PartKind::kSecondScale, {name(names.second), Dtype::kF32, stack}}};
}

std::vector<PartRun> Modelopt::emit(const WriteRequest& request, uint64_t slice, uint64_t row_begin,
                                    const EncodedView& rows) const {
  if (request.transposed) return emit_transposed_stack(request, slice, rows);
  std::vector<PartRun> runs{code_run(request, 0, slice, row_begin, rows),
                            scale_run(request, 1, slice, row_begin, rows)};
  if (row_begin == 0) runs.push_back(second_run(2, slice, rows, SecondLevel::kMultiply));
  return runs;
}

// Keys and their order as its own export of a weight-only model has them.
std::vector<std::pair<std::string, std::string>> Modelopt::write_config(const ConfigRequest& request,
                                                                        Json* config) const {
  const uint64_t group = request.format.block_cols;
  const Json producer = {{"name", "modelopt"}, {"version", kLayoutVersion}};
  Json weights = {{"dynamic", false}, {"num_bits", 4}, {"type", "float"}, {"group_size", group}};
  Json settings;
  settings["config_groups"]["group_0"]["weights"] = std::move(weights);
  settings["config_groups"]["group_0"]["targets"] = {"Linear"};
  // Without norms, as the library's own export: it lists the layers that it could have quantized.
  settings["ignore"] = request.kept;
  settings["quant_algo"] = kAlgorithm;
  settings["producer"] = producer;
  settings["quant_method"] = "modelopt";
  replace_quantization(config, std::move(settings));
  Json side;
  side["producer"] = producer;
  side["quantization"]["quant_algo"] = kAlgorithm;
  side["quantization"]["kv_cache_quant_algo"] = nullptr;
  side["quantization"]["group_size"] = group;
  side["quantization"]["exclude_modules"] = request.kept;
  return {{"hf_quant_config.json", json_text(side)}};
}

}  // namespace

const Convention& modelopt() {
  static const Modelopt convention;
  return convention;
}

}  // namespace nibble
