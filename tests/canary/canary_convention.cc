// A convention as somebody would add one: M.canary_codes, U8 (…, N, K/2) with the even column in the low nibble, and
// M.canary_scales, U8 (…, N, K/32), powers of two.
#include <array>
#include <nlohmann/json.hpp>

#include "nibble/checkpoint/conventions/claim.h"
#include "nibble/checkpoint/conventions/config_writer.h"
#include "nibble/checkpoint/conventions/part_reader.h"
#include "nibble/checkpoint/conventions/rows.h"

namespace nibble {
namespace {

constexpr std::array<std::string_view, 2> kSuffixes = {"canary_codes", "canary_scales"};
constexpr std::array<std::string_view, 1> kMethods = {"canary"};

class Canary final : public Convention {
 public:
  std::string_view name() const override { return "canary"; }
  std::span<const std::string_view> methods() const override { return kMethods; }
  std::span<const std::string_view> suffixes() const override { return kSuffixes; }

  void claim(const ModuleParts& module, const ReadContext& context, std::vector<Weight>* weights,
             std::vector<bool>* used) const override {
    Claim claim(*this, module, context, weights, used);
    const StoredTensor* codes = claim.get("canary_codes");
    if (codes == nullptr) return;
    if (claim.get("canary_scales") == nullptr) {
      claim.lacks("canary_codes", "canary_scales");
      return;
    }
    std::vector<uint64_t> shape = codes->shape;
    shape.back() *= 2;
    claim.add(claim.name_of("weight"), parse_format("canary"), shape);
    claim.attach(PartKind::kCodes, "canary_codes");
    claim.attach(PartKind::kScales, "canary_scales");
  }

  bool rows_contiguous(const Weight& /*weight*/) const override { return true; }

  EncodedMatrix read(const Checkpoint& checkpoint, const Weight& weight, uint64_t slice, uint64_t row_begin,
                     uint64_t rows) const override {
    return read_canonical(checkpoint, weight, slice, row_begin, rows);
  }

  bool can_write(const Format& format) const override { return format == parse_format("canary"); }

  std::vector<PartDecl> declare(const WriteRequest& request) const override {
    const RequestShape shape = request_shape(request);
    const std::string module = module_of(request.name);
    return {
        {PartKind::kCodes, {module + ".canary_codes", Dtype::kU8, stacked(request, {shape.rows, shape.cols / 2})}},
        {PartKind::kScales, {module + ".canary_scales", Dtype::kU8, stacked(request, {shape.rows, shape.cols / 32})}}};
  }

  std::vector<PartRun> emit(const WriteRequest& request, uint64_t slice, uint64_t row_begin,
                            const EncodedView& rows) const override {
    return {code_run(request, 0, slice, row_begin, rows), scale_run(request, 1, slice, row_begin, rows)};
  }

  std::vector<std::pair<std::string, std::string>> write_config(const ConfigRequest& /*request*/,
                                                                Json* config) const override {
    replace_quantization(config, Json{{"quant_method", "canary"}});
    return {};
  }
};

}  // namespace

const Convention& canary() {
  static const Canary convention;
  return convention;
}

}  // namespace nibble
