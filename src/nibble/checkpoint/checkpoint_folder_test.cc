#include "nibble/checkpoint/checkpoint_folder_test.h"

#include <fmt/format.h>

namespace nibble::folder_test {

void write_shard(const Path& path, const std::vector<std::string>& names) {
  std::vector<TensorDecl> tensors;
  std::vector<std::vector<std::byte>> data;
  for (const auto& name : names) {
    tensors.push_back({name, Dtype::kU8, {1}});
    data.push_back({std::byte{static_cast<unsigned char>(name.back())}});
  }
  write_safetensors(path, tensors, data, {{"format", "pt"}});
}

void write_index(const Path& folder, const std::vector<std::pair<std::string, std::string>>& map, uint64_t total_size) {
  std::string text = fmt::format(R"({{"metadata":{{"total_size":{}}},"weight_map":{{)", total_size);
  for (const auto& [name, file] : map)
    text += fmt::format("\"{}\":\"{}\"{}", name, file, &name == &map.back().first ? "" : ",");
  write_atomically(folder / "model.safetensors.index.json", text + "}}");
}

std::string shard_name(int number, int of) { return fmt::format("model-{:05}-of-{:05}.safetensors", number, of); }

Folder::Folder() {
  write_shard(*this / shard_name(1, 2), {"a", "b"});
  write_shard(*this / shard_name(2, 2), {"c", "d"});
  index({{"a", 1}, {"b", 1}, {"c", 2}, {"d", 2}});
  write_atomically(*this / "config.json", std::string_view("{\"model_type\":\"x\"}"));
}

void Folder::index(const std::vector<std::pair<std::string, int>>& map, uint64_t total_size) const {
  std::vector<std::pair<std::string, std::string>> names;
  names.reserve(map.size());
  for (const auto& [name, shard] : map) names.emplace_back(name, shard_name(shard, 2));
  write_index(path(), names, total_size);
}

Findings Folder::scan(const OpenOptions& options) const {
  Findings findings;
  Checkpoint::scan(path(), options, &findings);
  return findings;
}

std::vector<std::string> rules(const Findings& findings) {
  std::vector<std::string> found;
  for (const auto& finding : findings) found.push_back(finding.rule);
  return found;
}

std::vector<std::string> tensor_names(const Checkpoint& checkpoint) {
  std::vector<std::string> names;
  for (const auto& tensor : checkpoint.tensors()) names.push_back(tensor.name);
  return names;
}

}  // namespace nibble::folder_test
