// Tensors that stand for themselves: floats, and what is copied and never decoded (integers, booleans). Last in the
// list: what no convention claimed comes here, so this is also where a scale without its weight is found.
#include <algorithm>
#include <array>

#include "nibble/base/strings.h"
#include "nibble/checkpoint/conventions/claim.h"
#include "nibble/checkpoint/conventions/config_writer.h"
#include "nibble/checkpoint/conventions/part_reader.h"
#include "nibble/checkpoint/conventions/rows.h"
#include "nibble/checkpoint/conventions/stored_formats.h"

namespace nibble {
namespace {

constexpr std::array<std::string_view, 1> kSuffixes = {"weight"};

bool is_fnuz(Dtype dtype) { return dtype == Dtype::kF8E4M3Fnuz || dtype == Dtype::kF8E5M2Fnuz; }

// Types that hold a weight's codes and need scales to mean anything.
bool needs_scales(const StoredTensor& tensor) {
  if (tensor.shape.size() < 2) return false;
  switch (tensor.dtype) {
    case Dtype::kU8:
    case Dtype::kI8:
    case Dtype::kF4:
    case Dtype::kF6E2M3:
    case Dtype::kF6E3M2:
    case Dtype::kF8E4M3:
    case Dtype::kF8E5M2: return true;
    default: return false;
  }
}

// Suffixes of other conventions that are also what some models call a parameter of its own ("norm.scale").
constexpr std::array<std::string_view, 9> kOwnNames = {"scale", "scales",     "_scales", "blocks",     "_blocks",
                                                       "meta",  "compressed", "bitmask", "row_offsets"};

// A part that has no meaning but with a weight.
bool is_companion(const ModuleParts& module, std::string_view suffix, const StoredTensor& tensor) {
  if (suffix.empty() || suffix == "weight") return false;
  if (std::find(kOwnNames.begin(), kOwnNames.end(), suffix) == kOwnNames.end()) return true;
  const bool scale = suffix == "scale" || suffix == "scales" || suffix == "_scales";
  const bool vector_of_floats = tensor.shape.size() <= 1 && dense_element(tensor.dtype).has_value();
  return scale && (!vector_of_floats || module.parts.size() > 1);
}

class Dense final : public Convention {
 public:
  std::string_view name() const override { return "dense"; }
  std::span<const std::string_view> methods() const override { return {}; }
  std::span<const std::string_view> suffixes() const override { return kSuffixes; }

  void claim(const ModuleParts& module, const ReadContext& context, std::vector<Weight>* weights,
             std::vector<bool>* used) const override {
    Claim claim(*this, module, context, weights, used);
    const bool quantized = std::find(used->begin(), used->end(), true) != used->end();
    for (size_t i = 0; i < module.parts.size(); ++i) {
      if ((*used)[i]) continue;
      claim_part(&claim, module, module.parts[i].first, quantized);
    }
  }

  bool rows_contiguous(const Weight& weight) const override { return weight.row_order == RowOrder::kPlain; }

  EncodedMatrix read(const Checkpoint& checkpoint, const Weight& weight, uint64_t slice, uint64_t row_begin,
                     uint64_t rows) const override {
    if (weight.opaque) {
      const StoredTensor& tensor = *stored_part(checkpoint, weight, PartKind::kCodes);
      throw Error("this tensor holds no weights that can be decoded")
          .file(checkpoint.file_of(tensor))
          .tensor(tensor.name)
          .value("dtype", std::string(dtype_name(tensor.dtype)))
          .way_out("leave it as it is: it is copied byte for byte");
    }
    return read_canonical(checkpoint, weight, slice, row_begin, rows);
  }

  bool can_write(const Format& format) const override {
    return format.is_dense() &&
           (format.element == Element::kBF16 || format.element == Element::kF16 || format.element == Element::kF32);
  }
  ExpertForm expert_form(std::string_view /*family*/) const override { return ExpertForm::kAsSource; }

  std::vector<PartDecl> declare(const WriteRequest& request) const override {
    return {{PartKind::kCodes, {request.name, dtype_of(request.format.element), request.shape}}};
  }

  std::vector<PartRun> emit(const WriteRequest& request, uint64_t slice, uint64_t row_begin,
                            const EncodedView& rows) const override {
    return {code_run(request, 0, slice, row_begin, rows)};
  }

  std::vector<std::pair<std::string, std::string>> write_config(const ConfigRequest& /*request*/,
                                                                Json* config) const override {
    remove_quantization(config);
    return {};
  }

 private:
  void claim_part(Claim* claim, const ModuleParts& module, std::string_view suffix, bool quantized) const {
    const StoredTensor& tensor = *claim->get(suffix);
    if (is_fnuz(tensor.dtype)) {
      return claim->refuse("unsupported", suffix,
                           "FNUZ bytes stand for other values than the same bytes of the usual type (half, for E4M3): "
                           "convert the checkpoint to F8_E4M3 first");
    }
    if (is_companion(module, suffix, tensor)) return claim_companion(claim, module, suffix, tensor, quantized);
    const bool alone = module.parts.size() == 1 && !quantized;
    if (needs_scales(tensor) && (suffix == "weight" || dense_element(tensor.dtype))) {
      const bool declared = !claim->context().hints.method.empty();
      if (declared || !alone) {
        return claim->refuse(
            "unmatched-part", suffix,
            "a weight of this type needs scales, and there are none that belong to it; copy the missing "
            "tensors back in, or write the checkpoint again",
            {{"declared", claim->context().hints.method}});
      }
      claim->warn("unmatched-part", suffix,
                  "no scales and no quantization settings: the values are taken as they stand");
    }
    add(claim, suffix, tensor);
  }

  void claim_companion(Claim* claim, const ModuleParts& module, std::string_view suffix, const StoredTensor& tensor,
                       bool quantized) const {
    // Weight normalisation and recurrent layers have parts of such names without any quantization.
    const bool known = !starts_with(suffix, "weight_") || is_known(suffix);
    if (!known && !quantized && dense_element(tensor.dtype)) return add(claim, suffix, tensor);
    if (quantized) {
      return claim->refuse("unsupported", suffix,
                           "this part of a quantized weight is not known here, and the weight may mean something else "
                           "with it; export the checkpoint in a plain layout");
    }
    const bool has_weight = module.find("weight") >= 0 || module.find("") >= 0;
    if (has_weight && starts_with(suffix, "input_")) {
      claim->warn("unmatched-part", suffix,
                  "an activation scale beside a weight that is not quantized: it is not used");
      return add(claim, suffix, tensor);
    }
    if (has_weight) {
      return claim->refuse("unmatched-part", suffix,
                           "the weight beside this scale is not quantized: remove the scale if the weight was already "
                           "dequantized, or put the quantized weight back");
    }
    claim->refuse("unmatched-part", suffix,
                  "a scale without its weight; copy the missing tensor back in, or write the checkpoint again");
  }

  static bool is_known(std::string_view suffix) {
    for (const Convention* convention : conventions()) {
      const auto known = convention->suffixes();
      if (std::find(known.begin(), known.end(), suffix) != known.end()) return true;
    }
    return false;
  }

  static void add(Claim* claim, std::string_view suffix, const StoredTensor& tensor) {
    const auto element = dense_element(tensor.dtype);
    Weight& weight = claim->add(tensor.name, element ? plain_format(*element) : opaque_format(dtype_name(tensor.dtype)),
                                tensor.shape);
    weight.opaque = !element;
    claim->attach(PartKind::kCodes, suffix);
  }
};

}  // namespace

const Convention& dense() {
  static const Dense convention;
  return convention;
}

}  // namespace nibble
