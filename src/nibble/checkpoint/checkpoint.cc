#include "nibble/checkpoint/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "nibble/base/check.h"
#include "nibble/base/strings.h"
#include "nibble/checkpoint/folder.h"
#include "nibble/checkpoint/name_index.h"
#include "nibble/checkpoint/shard_reader.h"
#include "nibble/checkpoint/shard_selection.h"
#include "nibble/checkpoint/tensor_checks.h"

namespace nibble {

struct Checkpoint::State {
  Path path, folder;
  Container container = Container::kSafetensors;
  std::vector<StoredFile> files;
  std::vector<std::optional<InputFile>> inputs;  // one per file; empty where it could not be opened
  std::vector<StoredTensor> tensors;
  NameIndex names;  // views into `tensors`
  Json config, side_config;
  std::string side_config_name;
  std::optional<GgufFile> gguf;
  std::vector<Path> companions;

  void scan_folder(const FolderFiles& files_there, const OpenOptions& options, Findings* findings);
  void scan_file(const OpenOptions& options, Findings* findings);
  void take(std::vector<ShardContents> shards, const ShardSelection& selection, Findings* findings);
  void read_configs(const FolderFiles& files_there, Findings* findings);
};

namespace {

Json read_config(const Path& path, Findings* findings) {
  try {
    Json config = read_json(path);
    if (config.is_object()) return config;
    throw Error("the configuration is not a JSON object").file(path.string()).way_out("fetch the file again");
  } catch (const Error& error) {
    findings->push_back(finding_of(error, "bad-config"));
  }
  return {};
}

// The first link with the name of weights that leads nowhere; "" if there is none.
std::string dangling_weights(const Path& folder) {
  std::string first;
  std::error_code code;
  for (std::filesystem::directory_iterator it(folder, code), end; !code && it != end; it.increment(code)) {
    std::error_code ignored;
    const std::string name = it->path().filename().string();
    if (!is_weight_name(name) || !it->is_symlink(ignored) || it->exists(ignored)) continue;
    if (first.empty() || name < first) first = name;
  }
  return first;
}

Error no_weights(const Path& path, const FolderFiles& files) {
  Error error("there are no weights here: no .safetensors and no single .gguf file");
  error.file(path.string());
  if (const std::string link = dangling_weights(path); !link.empty()) {
    std::error_code ignored;
    return error.value("link", link)
        .value("is_a_link_to", std::filesystem::read_symlink(path / link, ignored).string())
        .way_out("fetch what the links lead to, or mount where that lies");
  }
  if (!files.gguf.empty())
    return error.value("gguf_files", files.gguf.size())
        .way_out(fmt::format("name one file, such as `{}`", files.gguf[0]));
  if (!files.other_weights.empty()) {
    return error.value("found", files.other_weights[0])
        .value("files", files.other_weights.size())
        .way_out("convert them to safetensors; nibble does not read pickled weights");
  }
  return error.way_out("name the folder that holds the weights").way_out("fetch the weights");
}

bool begins_with_gguf(const Path& path) {
  const InputFile file = InputFile::open(path);
  std::string magic(std::min<uint64_t>(4, file.size()), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(magic)));
  return magic == "GGUF";
}

}  // namespace

// Moves the shards' content into place: tensors by file, then offset, each with its file's number.
void Checkpoint::State::take(std::vector<ShardContents> shards, const ShardSelection& selection, Findings* findings) {
  std::vector<CheckedFile> checked;
  uint64_t count = 0;
  for (const ShardContents& shard : shards) count += shard.tensors.size();
  tensors.reserve(count);
  for (ShardContents& shard : shards) {
    const auto number = static_cast<uint32_t>(files.size());
    for (StoredTensor& tensor : shard.tensors) tensor.file = number;
    std::ranges::move(shard.tensors, std::back_inserter(tensors));
    std::ranges::move(shard.findings, std::back_inserter(*findings));
    checked.push_back({shard.file.name, shard.header_read});
    files.push_back(std::move(shard.file));
    inputs.push_back(std::move(shard.input));
    shard.tensors = {};
  }
  index_names(folder, checked, tensors, &names, findings);
  if (selection.index) check_index(*selection.index, selection.index_path, checked, tensors, names, findings);
}

void Checkpoint::State::scan_folder(const FolderFiles& there, const OpenOptions& options, Findings* findings) {
  if (there.safetensors.empty() && there.gguf.size() == 1 && there.indexes.empty()) {
    container = Container::kGguf;
    std::vector<ShardContents> shards;
    shards.push_back(read_gguf_shard(folder, there.gguf.front(), options, &gguf));
    take(std::move(shards), {}, findings);
    return;
  }
  if (there.safetensors.empty() && there.indexes.empty()) {
    if (!there.has_config) throw no_weights(path, there);
    findings->push_back(finding_of(no_weights(path, there), "no-weights"));
    return;
  }
  const ShardSelection selection = select_shards(folder, there, findings);
  take(read_shards(folder, selection.files, options), selection, findings);
}

void Checkpoint::State::scan_file(const OpenOptions& options, Findings* findings) {
  const std::string name = path.filename().string();
  std::vector<ShardContents> shards;
  if (ends_with(name, ".gguf") || begins_with_gguf(path)) {
    container = Container::kGguf;
    shards.push_back(read_gguf_shard(folder, name, options, &gguf));
  } else if (ends_with(name, ".safetensors")) {
    shards = read_shards(folder, {name}, options);
  } else {
    throw Error("neither a .safetensors nor a .gguf file")
        .file(path.string())
        .way_out("name a checkpoint's folder, a .safetensors file or a .gguf file");
  }
  take(std::move(shards), {}, findings);
}

void Checkpoint::State::read_configs(const FolderFiles& there, Findings* findings) {
  if (there.has_config) config = read_config(folder / "config.json", findings);
  if (there.side_config.empty()) return;
  side_config_name = there.side_config;
  side_config = read_config(folder / there.side_config, findings);
}

Checkpoint Checkpoint::scan(const Path& path, const OpenOptions& options, Findings* findings) {
  Checkpoint checkpoint;
  State& state = *checkpoint.state_;
  std::error_code code;
  const auto status = std::filesystem::status(path, code);
  if (!std::filesystem::exists(status)) throw absent_path(path);
  const bool is_folder = std::filesystem::is_directory(status);
  state.path = path;
  state.folder = is_folder ? path : path.has_parent_path() ? path.parent_path() : Path(".");
  FolderFiles there = sort_folder(state.folder);
  if (is_folder) {
    state.scan_folder(there, options, findings);
  } else {
    state.scan_file(options, findings);
  }
  state.read_configs(there, findings);
  state.companions = std::move(there.companions);
  return checkpoint;
}

Checkpoint Checkpoint::open(const Path& path, const OpenOptions& options) {
  Findings findings;
  Checkpoint checkpoint = scan(path, options, &findings);
  throw_first_error(findings);
  return checkpoint;
}

Checkpoint::Checkpoint() : state_(std::make_unique<State>()) {}
Checkpoint::Checkpoint(Checkpoint&&) noexcept = default;
Checkpoint& Checkpoint::operator=(Checkpoint&&) noexcept = default;
Checkpoint::~Checkpoint() = default;

const Path& Checkpoint::path() const { return state_->path; }
const Path& Checkpoint::folder() const { return state_->folder; }
Container Checkpoint::container() const { return state_->container; }
const std::vector<StoredFile>& Checkpoint::files() const { return state_->files; }
const std::vector<StoredTensor>& Checkpoint::tensors() const { return state_->tensors; }
int64_t Checkpoint::find(std::string_view name) const { return state_->names.find(name); }
const Json& Checkpoint::config() const { return state_->config; }
const Json& Checkpoint::side_config() const { return state_->side_config; }
std::string Checkpoint::side_config_name() const { return state_->side_config_name; }
const GgufFile* Checkpoint::gguf() const { return state_->gguf.has_value() ? &state_->gguf.value() : nullptr; }
const std::vector<Path>& Checkpoint::companions() const { return state_->companions; }

std::string Checkpoint::file_of(const StoredTensor& tensor) const {
  return (state_->folder / state_->files[tensor.file].name).string();
}

void Checkpoint::read(const StoredTensor& tensor, uint64_t offset, std::span<std::byte> out) const {
  try {
    if (offset > tensor.bytes || out.size() > tensor.bytes - offset) {
      throw Error("read past the end of a tensor")
          .file(file_of(tensor))
          .value("offset", offset)
          .value("bytes", out.size())
          .value("tensor_bytes", tensor.bytes)
          .way_out("its shape is not what the reader expects: run `nibble verify`");
    }
    const std::optional<InputFile>& input = state_->inputs[tensor.file];
    NIBBLE_CHECK(input.has_value());  // tensors come from files that could be opened
    input->read_at(tensor.offset + offset, out);
  } catch (Error& error) {
    error.tensor(tensor.name);
    throw;
  }
}

std::vector<std::byte> Checkpoint::read_all(const StoredTensor& tensor) const {
  std::vector<std::byte> bytes(tensor.bytes);
  read(tensor, 0, bytes);
  return bytes;
}

}  // namespace nibble
