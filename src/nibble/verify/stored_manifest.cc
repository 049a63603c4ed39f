#include "nibble/verify/stored_manifest.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "nibble/base/error.h"
#include "nibble/base/json.h"
#include "nibble/base/strings.h"
#include "nibble/checkpoint/json_scanner.h"

namespace nibble {
namespace {

constexpr const char* kFileName = "nibble.json";
constexpr uint64_t kLimit = uint64_t{1} << 30;  // 500,000 rows are about 250 MB

Error malformed(const std::string& source, std::string message) {
  return std::move(
      Error(std::move(message))
          .file(source)
          .way_out("copy the folder again, or remove the file: then nothing is recorded and nothing compared"));
}

// Copies of an object's keys. An entry has about ten, short enough to need no memory of their own: these are compared
// one by one. Of an object with more there may be any number.
class SeenKeys {
 public:
  // null: it has been there already. Valid until the next call.
  const std::string* add(std::string_view key) {
    if (std::ranges::find(few_, key) != few_.end()) return nullptr;
    if (few_.size() < kFew) {
      if (few_.empty()) few_.reserve(kFew);
      return &few_.emplace_back(key);
    }
    const auto [at, added] = many_.emplace(key);
    return added ? &*at : nullptr;
  }

 private:
  static constexpr size_t kFew = 16;
  std::vector<std::string> few_;
  std::set<std::string, std::less<>> many_;
};

// The members of an object that are looked at; the others are skipped. Twice the same key would leave open which
// counts.
class Members {
 public:
  explicit Members(JsonScanner* scan, const std::string& source) : scan_(scan), source_(source) {}

  template <typename OnMember>
  void each(const OnMember& on_member) {
    if (scan_->peek() != JsonKind::kObject)
      throw malformed(source_, "the manifest or an entry of it is no JSON object");
    SeenKeys seen;
    scan_->object([&](std::string_view view) {
      const std::string* key = seen.add(view);
      if (key == nullptr)
        throw malformed(source_, "a key stands twice in one entry of the manifest").value("key", std::string(view));
      if (scan_->peek() == JsonKind::kNull || !on_member(*key)) scan_->skip();
    });
  }

 private:
  JsonScanner* scan_;
  const std::string& source_;
};

bool is_sha256(std::string_view text) {
  return text.size() == 64 &&
         std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// A file of the folder or of a folder in it, and not one outside.
bool is_inside(const std::string& name) {
  if (name.find('\0') != std::string::npos) return false;
  return std::ranges::all_of(split(name, '/'),
                             [](std::string_view part) { return !part.empty() && part != "." && part != ".."; });
}

// Row by row: half a million of them need no document tree.
class ManifestReader {
 public:
  ManifestReader(std::string_view text, const std::string& source) : source_(source), scan_(text, source) {}

  StoredManifest read() {
    StoredManifest manifest;
    manifest.path = source_;
    Members(&scan_, source_).each([&](std::string_view key) {
      if (key == "contract") {
        manifest.contract = scan_.peek() == JsonKind::kString ? scan_.string() : scan_.skip();
      } else if (key == "recipe" && scan_.peek() == JsonKind::kObject) {
        manifest.bit_exact_with = library();
      } else if (key == "outputs") {
        list(key, [&] { manifest.outputs.push_back(file()); });
      } else if (key == "tensors") {
        list(key, [&] { manifest.tensors.push_back(tensor()); });
      } else {
        return false;
      }
      return true;
    });
    scan_.end();
    return manifest;
  }

 private:
  template <typename OnRow>
  void list(std::string_view key, const OnRow& on_row) {
    if (scan_.peek() != JsonKind::kArray)
      throw malformed(source_, "`" + std::string(key) + "` of the manifest is no list");
    scan_.array(on_row);
  }

  std::string_view text(std::string_view key) {
    if (scan_.peek() != JsonKind::kString)
      throw malformed(source_, "`" + std::string(key) + "` of an entry of the manifest is no text");
    return scan_.string();
  }

  // Of the recipe only this is looked at (recorded_run.h wants all of it).
  std::string library() {
    std::string name;
    Members(&scan_, source_).each([&](std::string_view key) {
      if (key != "bit_exact_with" || scan_.peek() != JsonKind::kString) return false;
      name = scan_.string();
      return true;
    });
    return name;
  }

  RecordedFile file() {
    RecordedFile file;
    std::optional<uint64_t> bytes;
    Members(&scan_, source_).each([&](std::string_view key) {
      if (key == "file") {
        file.file = text(key);
      } else if (key == "sha256") {
        file.sha256 = text(key);
      } else if (key == "bytes") {
        if (scan_.peek() == JsonKind::kNumber) bytes = whole_number(scan_.number());
        if (!bytes) throw malformed(source_, "`bytes` of an entry of the manifest is no whole number");
      } else {
        return false;
      }
      return true;
    });
    if (!is_inside(file.file))
      throw malformed(source_, "an entry of the manifest's outputs names no file of its folder")
          .value("output", file.file);
    if (!bytes) throw malformed(source_, "an entry of the manifest's outputs lacks `bytes`").value("output", file.file);
    if (!is_sha256(file.sha256))
      throw malformed(source_, "a hash in the manifest is not 64 hexadecimal digits").value("output", file.file);
    file.bytes = *bytes;
    return file;
  }

  RecordedTensor tensor() {
    RecordedTensor tensor;
    Members(&scan_, source_).each([&](std::string_view key) {
      if (key == "second_scales") {
        const Json row{{key, parse_json(scan_.skip(), source_)}};
        tensor.second_scales = read_scale_changes(row, source_).second_scales;
        return true;
      }
      if (key != "name" && key != "format" && key != "rule") return false;
      (key == "name" ? tensor.name : key == "format" ? tensor.format : tensor.rule) = text(key);
      return true;
    });
    if (tensor.name.empty()) throw malformed(source_, "an entry of the manifest's tensors lacks `name`");
    return tensor;
  }

  const std::string& source_;
  JsonScanner scan_;
};

template <typename Read>
std::optional<StoredManifest> guarded(Findings* findings, const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    findings->push_back(finding_of(error, "manifest-hash"));
  }
  return std::nullopt;
}

}  // namespace

const RecordedFile* StoredManifest::find(std::string_view file) const {
  const auto found =
      std::find_if(outputs.begin(), outputs.end(), [&](const RecordedFile& record) { return record.file == file; });
  return found == outputs.end() ? nullptr : &*found;
}

std::optional<StoredManifest> read_manifest(const Path& folder, Findings* findings) {
  const Path path = folder / kFileName;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::nullopt;
  return guarded(findings, [&] {
    const std::string text = read_text(path, kLimit), name = path.string();
    return ManifestReader(text, name).read();
  });
}

std::optional<StoredManifest> parse_manifest(std::string_view text, const std::string& source_name,
                                             Findings* findings) {
  return guarded(findings, [&] { return ManifestReader(text, source_name).read(); });
}

}  // namespace nibble
