#include "nibble/train/loop/state.h"

#include <charconv>
#include <cstring>
#include <map>
#include <utility>

#include "nibble/base/error.h"
#include "nibble/base/hash.h"
#include "nibble/checkpoint/checkpoint.h"

namespace nibble {
namespace {

constexpr const char* kKinds[] = {"master.", "first.", "second."};

Error state_error(const Path& path, const char* what) {
  return std::move(Error(what).file(path.string()).way_out("start the run anew, without --resume"));
}

std::string hash_of(const std::string& text) { return xxh3_hex(std::as_bytes(std::span(text.data(), text.size()))); }

uint64_t number_of(const Path& path, const std::map<std::string, std::string>& metadata, const char* key) {
  const auto found = metadata.find(key);
  uint64_t number = 0;
  if (found != metadata.end()) {
    const char* end = found->second.data() + found->second.size();
    const auto [stop, code] = std::from_chars(found->second.data(), end, number);
    if (code == std::errc() && stop == end) return number;
  }
  throw std::move(state_error(path, "the state of a run does not say how far it came").value("key", key));
}

std::vector<float> read_floats(const Checkpoint& file, const Path& path, const std::string& name, uint64_t count,
                               bool optional) {
  const int64_t index = file.find(name);
  if (index < 0 && optional) return {};
  if (index < 0) throw std::move(state_error(path, "the state of a run lacks a tensor").tensor(name));
  const StoredTensor& tensor = file.tensors()[static_cast<size_t>(index)];
  if (tensor.dtype != Dtype::kF32 || tensor.bytes != count * sizeof(float)) {
    throw std::move(state_error(path, "the state of a run belongs to another model")
                        .tensor(name)
                        .value("bytes", tensor.bytes)
                        .value("bytes_expected", count * sizeof(float)));
  }
  std::vector<float> values(count);
  file.read(tensor, 0, std::as_writable_bytes(std::span(values)));
  return values;
}

}  // namespace

void write_state(const Path& path, const TrainedTensors& tensors, const TrainState& state) {
  std::vector<TensorDecl> declared;
  std::vector<std::vector<std::byte>> data;
  const std::vector<std::vector<float>>* all[] = {&state.masters, &state.first, &state.second};
  for (size_t kind = 0; kind < std::size(all); ++kind) {
    for (size_t i = 0; i < all[kind]->size(); ++i) {
      const std::vector<float>& values = (*all[kind])[i];
      if (values.empty()) continue;
      declared.push_back({kKinds[kind] + tensors.list()[i].name, Dtype::kF32, tensors.list()[i].shape});
      const auto bytes = std::as_bytes(std::span(values));
      data.emplace_back(bytes.begin(), bytes.end());
    }
  }
  write_safetensors(path, declared, data,
                    {{"step", std::to_string(state.step)},
                     {"updates", std::to_string(state.updates)},
                     {"run", hash_of(state.fingerprint)},
                     {"configuration", state.fingerprint}});
}

TrainState read_state(const Path& path, const TrainedTensors& tensors, const std::string& fingerprint) {
  const Checkpoint file = Checkpoint::open(path);
  const std::map<std::string, std::string>& metadata = file.files().at(0).metadata;
  const auto run = metadata.find("run");
  if (run == metadata.end() || run->second != hash_of(fingerprint)) {
    const auto before = metadata.find("configuration");
    throw std::move(state_error(path, "the state belongs to a run with another configuration")
                        .value("was", before == metadata.end() ? "" : before->second)
                        .value("is", fingerprint)
                        .way_out("go on with the configuration that the run began with"));
  }
  TrainState state;
  state.step = number_of(path, metadata, "step");
  state.updates = number_of(path, metadata, "updates");
  state.fingerprint = fingerprint;
  for (const TrainedTensor& tensor : tensors.list()) {
    const uint64_t count = tensor.values.size();
    state.masters.push_back(read_floats(file, path, kKinds[0] + tensor.name, count, false));
    state.first.push_back(read_floats(file, path, kKinds[1] + tensor.name, count, true));
    state.second.push_back(read_floats(file, path, kKinds[2] + tensor.name, count, true));
  }
  return state;
}

}  // namespace nibble
