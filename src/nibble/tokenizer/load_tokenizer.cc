#include <algorithm>

#include "nibble/base/error.h"
#include "nibble/checkpoint/folder.h"
#include "nibble/checkpoint/gguf.h"
#include "nibble/tokenizer/gguf_folder.h"
#include "nibble/tokenizer/tiktoken.h"
#include "nibble/tokenizer/tokenizer.h"
#include "nibble/tokenizer/tokenizer_json.h"

namespace nibble {
namespace {

constexpr uint64_t kMaxFileBytes = uint64_t{256} << 20;  // released ones have up to 34 MB
constexpr uint64_t kMaxConfigBytes = uint64_t{16} << 20;

constexpr const char* kFromRelease = "copy tokenizer.json and tokenizer_config.json of the model's release there";

NamedText text_at(const Path& path, uint64_t limit) {
  return {path.string(), std::filesystem::exists(path) ? read_text(path, limit) : ""};
}

NamedText config_beside(const Path& file) {
  return text_at(file.parent_path() / "tokenizer_config.json", kMaxConfigBytes);
}

std::unique_ptr<Tokenizer> from_gguf(const Path& path) {
  const GgufFile gguf = read_gguf(InputFile::open(path));
  NamedText tokenizer{path.string(), ""};
  NamedText config{path.string(), ""};
  for (auto& [name, text] : tokenizer_texts(gguf, path.string())) {
    if (name != "tokenizer.json" && name != "tokenizer_config.json") continue;
    (name == "tokenizer.json" ? tokenizer : config).text = std::move(text);
  }
  if (tokenizer.text.empty())
    throw Error("the file carries no tokenizer").file(path.string()).way_out("use a GGUF file that has its vocabulary");
  return tokenizer_from_json(tokenizer, config);
}

std::unique_ptr<Tokenizer> from_folder(const Path& folder) {
  if (std::filesystem::exists(folder / "tokenizer.json"))
    return tokenizer_from_json(text_at(folder / "tokenizer.json", kMaxFileBytes),
                               config_beside(folder / "tokenizer.json"));
  if (std::filesystem::exists(folder / "tiktoken.model"))
    return tokenizer_from_tiktoken(text_at(folder / "tiktoken.model", kMaxFileBytes),
                                   config_beside(folder / "tiktoken.model"));
  const FolderFiles files = sort_folder(folder);
  if (files.gguf.size() == 1 && files.safetensors.empty()) return from_gguf(folder / files.gguf[0]);
  for (const char* other : {"tokenizer.model", "vocab.json", "vocab.txt", "spiece.model"}) {
    if (!std::filesystem::exists(folder / other)) continue;
    throw Error("a tokenizer in a file that nibble does not read; it reads tokenizer.json, tiktoken.model and GGUF")
        .file((folder / other).string())
        .way_out("write a tokenizer.json with transformers (AutoTokenizer.from_pretrained, save_pretrained)");
  }
  throw Error("the folder has no tokenizer").file(folder.string()).way_out(kFromRelease);
}

}  // namespace

std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& model) {
  if (std::filesystem::is_directory(model)) return from_folder(model);
  if (!std::filesystem::exists(model)) throw absent_path(model);
  if (model.extension() == ".gguf") return from_gguf(model);
  if (model.extension() == ".json") return tokenizer_from_json(text_at(model, kMaxFileBytes), config_beside(model));
  if (model.extension() == ".safetensors") return from_folder(model.has_parent_path() ? model.parent_path() : ".");
  throw Error("this file can hold no tokenizer that nibble reads")
      .file(model.string())
      .way_out("name a checkpoint's folder, its tokenizer.json, or a .gguf file");
}

}  // namespace nibble
