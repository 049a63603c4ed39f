// TinyCheckpoint::quantize: numerics' quantizer and a convention's writer on one tensor after another.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "nibble/base/check.h"
#include "nibble/base/strings.h"
#include "nibble/checkpoint/convention.h"
#include "nibble/numerics/quantizer.h"
#include "nibble/testing/tiny.h"

namespace nibble::testing {
namespace {

std::string module_of(const std::string& name) {
  constexpr std::string_view kWeight = ".weight";
  return ends_with(name, kWeight) ? name.substr(0, name.size() - kWeight.size()) : name;
}

// gpt-oss's dense stacks lie (E, K, N).
std::vector<float> transposed_slices(const std::vector<float>& in, const std::vector<uint64_t>& shape) {
  std::vector<float> out(in.size());
  const uint64_t rows = shape[1];
  const uint64_t cols = shape[2];
  for (uint64_t i = 0; i < in.size(); ++i) {
    const uint64_t slice = i / (rows * cols);
    const uint64_t at = i % (rows * cols);
    out[slice * rows * cols + at % cols * rows + at / cols] = in[i];
  }
  return out;
}

}  // namespace

void TinyCheckpoint::quantize_one(const std::string& name, std::string_view layout, const Format& format) {
  const Convention& convention = parse_layout(layout, format);
  const TinyTensor source = at(name);
  std::vector<float> values = this->values(name);
  WriteRequest request;
  request.name = name;
  request.format = format;
  request.shape = source.shape;
  if (source.shape.size() == 3) {
    values = transposed_slices(values, source.shape);
    std::swap(request.shape[1], request.shape[2]);
  }
  request.second_level = format.two_level ? convention.second_level() : SecondLevel::kNone;
  const uint64_t cols = request.shape.back();
  const uint64_t rows = request.shape[request.shape.size() - 2];
  const uint64_t slices = values.size() / (rows * cols);
  const auto parts = convention.declare(request);
  tensors_.erase(name);
  for (const PartDecl& part : parts)
    add(part.tensor.name, part.tensor.dtype, part.tensor.shape, std::vector<std::byte>(part.tensor.bytes()));
  const Quantizer quantizer({format, default_rule(format), BitExact::kNone, request.second_level});
  for (uint64_t slice = 0; slice < slices; ++slice) {
    const float* from = values.data() + slice * rows * cols;
    const DenseView view = {reinterpret_cast<const std::byte*>(from), Element::kF32, rows, cols, cols * sizeof(float)};
    EncodedMatrix matrix = EncodedMatrix::make(format, rows, cols);
    matrix.tensor_scale = quantizer.tensor_scale(abs_max(view).amax);
    NIBBLE_CHECK(!quantizer.encode(view, matrix.tensor_scale, matrix.mutable_view(), nullptr));
    for (const PartRun& run : convention.emit(request, slice, 0, matrix.view())) {
      auto& data = at(parts[run.part].tensor.name).data;
      NIBBLE_CHECK(run.offset + run.content().size() <= data.size());
      std::memcpy(data.data() + run.offset, run.content().data(), run.content().size());
    }
  }
}

void TinyCheckpoint::quantize(std::string_view layout, std::string_view format_name, std::string_view glob) {
  const Format format = parse_format(format_name);
  ConfigRequest request;
  request.format = format;
  request.rule = default_rule(format).name();
  const auto family = config_->find("model_type");
  if (family != config_->end()) request.source_family = family->get<std::string>();
  const Json source_config = *config_;
  request.source_config = &source_config;
  request.tool_version = "0";
  for (const std::string& name : matching("*")) {
    const TinyTensor& tensor = at(name);
    if (tensor.shape.size() < 2 || ends_with(name, "bias")) continue;
    if (glob_match(glob, name)) {
      request.quantized.push_back(module_of(name));
      quantize_one(name, layout, format);
    } else {
      request.kept.push_back(module_of(name));
    }
  }
  parse_layout(layout, format).write_config(request, config_.get());
}

}  // namespace nibble::testing
