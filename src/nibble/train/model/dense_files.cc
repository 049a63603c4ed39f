#include "nibble/train/model/dense_files.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "nibble/base/error.h"
#include "nibble/checkpoint/safetensors.h"
#include "nibble/numerics/decode.h"

namespace nibble {
namespace {

// Calls use(first element in the parameter, first element in the tensor, elements) for every row of the parameter.
template <typename Use>
void for_rows(const TrainedTensor& tensor, const ParamPlace& place, const Use& use) {
  for (uint64_t s = 0; s < place.slices; ++s) {
    for (uint64_t r = 0; r < place.rows; ++r) {
      const uint64_t there = (place.slice + s) * tensor.rows + place.row_of(r);
      use((s * place.rows + r) * tensor.cols, there * tensor.cols, tensor.cols);
    }
  }
}

std::vector<float> all_values(const Checkpoint& checkpoint, const Weight& weight) {
  std::vector<float> values;
  for (uint64_t s = 0; s < weight.slices(); ++s) {
    const std::vector<float> slice = read_rows_f32(checkpoint, weight, s, 0, weight.rows());
    values.insert(values.end(), slice.begin(), slice.end());
  }
  return values;
}

void check_size(const Checkpoint& checkpoint, const TrainedTensor& tensor, const ParamPlace& place,
                const std::string& name, uint64_t there) {
  const uint64_t wanted = place.slices * place.rows * tensor.cols;
  if (there == wanted) return;
  throw Error("a tensor has not the size that the configuration gives it")
      .file(checkpoint.path().string())
      .tensor(name)
      .value("elements", there)
      .value("elements_expected", wanted)
      .way_out("run `nibble verify` on the checkpoint");
}

// (S, N, K) to (S, K, N).
std::vector<float> turned(const std::vector<float>& values, uint64_t rows, uint64_t cols) {
  std::vector<float> out(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const uint64_t slice = i / (rows * cols), r = i / cols % rows, c = i % cols;
    out[(slice * cols + c) * rows + r] = values[i];
  }
  return out;
}

std::vector<std::byte> rounded(const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * 2);
  const DenseView view{reinterpret_cast<const std::byte*>(values.data()), Element::kF32, 1, values.size(),
                       values.size() * sizeof(float)};
  convert(view, Element::kBF16, bytes.data());
  return bytes;
}

}  // namespace

void read_values(const Checkpoint& checkpoint, const Model& model, TrainedTensors* tensors) {
  std::vector<uint64_t> filled(tensors->list().size());
  for (size_t i = 0; i < model.params.size(); ++i) {
    const ParamSpec& param = model.params[i];
    if (param.optional && !param.counted) continue;  // a tied head that is there all the same
    const Weight& weight = model.table.weights()[i];
    if (weight.opaque || !tensors->holds(param)) continue;
    const ParamPlace place = tensors->place(param);
    TrainedTensor& tensor = tensors->list()[place.tensor];
    const std::vector<float> values = all_values(checkpoint, weight);
    check_size(checkpoint, tensor, place, weight.name, values.size());
    for_rows(tensor, place, [&](uint64_t from, uint64_t to, uint64_t count) {
      std::copy_n(values.begin() + static_cast<ptrdiff_t>(from), count,
                  tensor.values.begin() + static_cast<ptrdiff_t>(to));
    });
    filled[place.tensor] += values.size();
  }
  for (size_t t = 0; t < filled.size(); ++t) {
    const TrainedTensor& tensor = tensors->list()[t];
    if (filled[t] == tensor.values.size()) continue;
    throw Error("the checkpoint does not hold all of a tensor that is trained")
        .file(checkpoint.path().string())
        .tensor(tensor.name)
        .value("elements", filled[t])
        .value("elements_expected", tensor.values.size())
        .way_out("run `nibble verify` on the checkpoint");
  }
}

void write_dense(const Path& folder, const Json& config, const TrainedTensors& tensors) {
  std::vector<TensorDecl> declared;
  std::vector<std::vector<std::byte>> data;
  declared.reserve(tensors.params().size());
  data.reserve(tensors.params().size());
  for (const ParamSpec& param : tensors.params()) {
    const ParamPlace place = tensors.place(param);
    const TrainedTensor& tensor = tensors.list()[place.tensor];
    std::vector<float> values(place.slices * place.rows * tensor.cols);
    for_rows(tensor, place, [&](uint64_t to, uint64_t from, uint64_t count) {
      std::copy_n(tensor.values.begin() + static_cast<ptrdiff_t>(from), count,
                  values.begin() + static_cast<ptrdiff_t>(to));
    });
    std::vector<uint64_t> shape = param.shape;
    if (param.transposed_when_dense) {
      values = turned(values, place.rows, tensor.cols);
      std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
    }
    declared.push_back({param.name, Dtype::kBF16, std::move(shape)});
    data.push_back(rounded(values));
  }
  NewFolders made(folder);
  write_safetensors(folder / "model.safetensors", declared, data, {{"format", "pt"}});
  write_atomically(folder / "config.json", json_text(config));
  made.keep();
}

}  // namespace nibble
