#include "nibble/quantize/side_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <span>

#include "nibble/base/error.h"
#include "nibble/base/hash.h"
#include "nibble/base/strings.h"
#include "nibble/checkpoint/conventions/rows.h"
#include "nibble/checkpoint/shard_index.h"
#include "nibble/checkpoint/sub_folders.h"
#include "nibble/tokenizer/gguf_folder.h"

namespace nibble {
namespace {

constexpr std::string_view kWeightTail = ".weight";

ConfigRequest config_request(const Checkpoint& source, const Model& model, const OutputPlan& plan,
                             const QuantizeRequest& request) {
  ConfigRequest config;
  config.format = request.format;
  config.rule = request.rule.rule == nullptr ? "" : request.rule.name();
  config.source_family = model.family_name;
  config.model_dtype = plan.model_dtype;
  config.tool_version = kToolVersion;
  config.source_config = &source.config();
  for (const OutWeight& out : plan.outs) {
    // Copies of what was in the scheme already count as quantized too.
    const bool encoded = !out.format.is_dense();
    if (encoded) config.quantized.push_back(module_of(out.name));
    if (encoded && out.route != Route::kEncode) config.all_by_rule = false;
    // Weights only: a bias or a scale of a module is not a module that is kept.
    if (!encoded && out.shape.size() >= 2 && out.param.role != Role::kBias) config.kept.push_back(module_of(out.name));
    if (out.param.role == Role::kNorm && out.shape.size() == 1 && ends_with(out.name, kWeightTail))
      config.norms.push_back(module_of(out.name));
  }
  std::sort(config.quantized.begin(), config.quantized.end());
  std::sort(config.kept.begin(), config.kept.end());
  std::sort(config.norms.begin(), config.norms.end());
  return config;
}

// A 16-bit copy must not claim to be quantized, wherever the source said so.
void remove_quantization(Json* config) {
  for (const char* key : {"quantization_config", "compression_config"}) {
    config->erase(key);
    if (config->contains("text_config") && (*config)["text_config"].is_object()) (*config)["text_config"].erase(key);
  }
}

void set_dtype(Json* config, Element element) {
  const char* name = element == Element::kBF16 ? "bfloat16" : element == Element::kF16 ? "float16" : "float32";
  for (const char* key : {"torch_dtype", "dtype"}) {
    if (config->contains(key)) (*config)[key] = name;
    if (config->contains("text_config") && (*config)["text_config"].contains(key)) (*config)["text_config"][key] = name;
  }
}

// A single file lies where it lies: what is in the folders beside it says nothing about it.
bool has_own_folder(const Checkpoint& source) { return std::filesystem::is_directory(source.path()); }

}  // namespace

std::vector<std::pair<std::string, std::string>> side_texts(const Checkpoint& source, const Model& model,
                                                            const OutputPlan& plan, const QuantizeRequest& request) {
  std::vector<std::pair<std::string, std::string>> texts;
  Json config = source.config();
  if (source.gguf() != nullptr && model.family != nullptr) {
    config = model.family->config_from_gguf(*source.gguf(), model.spec);
    texts = tokenizer_texts(*source.gguf(), source.path().string());
    if (!texts.empty()) tell_of_named_templates(*source.gguf());
    // The file names no type of the whole: what is written decides.
    set_dtype(&config, plan.model_dtype);
  }
  // A checkpoint without a configuration (a single file, an unknown model) gets one only if there is something to say.
  if (config.is_null() && plan.layout == nullptr) return texts;
  if (config.is_null()) config = Json::object();
  if (plan.layout == nullptr) {
    remove_quantization(&config);
    set_dtype(&config, plan.model_dtype);
  } else {
    for (auto& extra : plan.layout->write_config(config_request(source, model, plan, request), &config))
      texts.push_back(std::move(extra));
  }
  texts.emplace_back("config.json", json_text(config));
  return texts;
}

std::optional<std::string> output_index_text(const OutputPlan& plan, const Checkpoint& source) {
  if (plan.shards.size() < 2) return std::nullopt;
  ShardIndex index;
  uint64_t total = 0;
  for (uint32_t s = 0; s < plan.shards.size(); ++s) {
    index.files.push_back(plan.shards[s].file_name);
    for (TensorDecl& tensor : shard_layout(plan, plan.shards[s], source).tensors) {
      total += tensor.bytes();
      index.weights.emplace_back(std::move(tensor.name), s);
    }
  }
  index.total_size = total;
  return shard_index_text(index);
}

uint64_t index_bytes(const OutputPlan& plan, const Checkpoint& source) {
  if (plan.shards.size() < 2) return 0;
  constexpr uint64_t kHead = 200;
  constexpr uint64_t kRow = 16;  // quotes, colon, comma, indentation
  uint64_t bytes = kHead;
  for (const OutWeight& out : plan.outs) {
    for (const PartDecl& part : parts_of(plan, out, source))
      bytes += kRow + part.tensor.name.size() + plan.shards[out.shard].file_name.size();
  }
  return bytes;
}

std::vector<Path> copied_companions(const Checkpoint& source,
                                    const std::vector<std::pair<std::string, std::string>>& texts) {
  std::set<std::string> made;
  for (const auto& [name, text] : texts) made.insert(name);
  std::vector<Path> copied;
  for (const Path& companion : source.companions()) {
    if (!made.contains(companion.filename().string())) copied.push_back(companion.filename());
  }
  if (has_own_folder(source)) std::ranges::move(sort_sub_folders(source.folder()).files, std::back_inserter(copied));
  return copied;
}

std::vector<std::string> left_folder_notes(const Checkpoint& source) {
  std::vector<std::string> notes;
  if (!has_own_folder(source)) return notes;
  for (const auto& [name, why] : sort_sub_folders(source.folder()).left)
    notes.push_back(fmt::format("sub-folder {} is not carried over: {}", printable(name), why));
  return notes;
}

uint64_t side_bytes(const Checkpoint& source, const std::vector<std::pair<std::string, std::string>>& texts) {
  uint64_t bytes = 0;
  for (const auto& [name, text] : texts) bytes += text.size();
  for (const Path& file : copied_companions(source, texts)) bytes += std::filesystem::file_size(source.folder() / file);
  return bytes;
}

std::vector<SideFile> side_files(const Checkpoint& source,
                                 const std::vector<std::pair<std::string, std::string>>& texts) {
  std::vector<SideFile> files;
  files.reserve(texts.size());
  for (const auto& [name, text] : texts) files.push_back({name, &text});
  for (const Path& file : copied_companions(source, texts)) files.push_back({file.generic_string(), nullptr});
  return files;
}

void write_side_file(const Checkpoint& source, const SideFile& file, const Path& target) {
  if (file.text != nullptr) return write_atomically(target / file.name, *file.text);
  const Path name = file.name;
  if (name.has_parent_path()) std::filesystem::create_directories(target / name.parent_path());
  copy_atomically(source.folder() / name, target / name);
}

std::string side_file_sha256(const Checkpoint& source, const SideFile& file) {
  return file.text == nullptr ? sha256_of_file(source.folder() / file.name)
                              : sha256_hex(std::as_bytes(std::span(*file.text)));
}

bool is_document(std::string_view name) {
  constexpr std::array<std::string_view, 8> kEndings = {".md",  ".png", ".jpg",  ".jpeg",
                                                        ".gif", ".svg", ".webp", ".pdf"};
  constexpr std::array<std::string_view, 4> kBeginnings = {"README", "LICENSE", "NOTICE", "USE_POLICY"};
  const std::string_view base = name.substr(name.rfind('/') + 1);
  return std::ranges::any_of(kEndings, [&](std::string_view ending) { return ends_with(base, ending); }) ||
         std::ranges::any_of(kBeginnings, [&](std::string_view beginning) { return starts_with(base, beginning); });
}

}  // namespace nibble
