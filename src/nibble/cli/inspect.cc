#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "nibble/base/error.h"
#include "nibble/base/strings.h"
#include "nibble/base/table.h"
#include "nibble/checkpoint/checkpoint.h"
#include "nibble/cli/commands.h"
#include "nibble/models/model.h"

namespace nibble {
namespace {

struct Group {
  uint64_t tensors = 0, bytes = 0, elements = 0;
  std::map<std::string, uint64_t> shapes;
};

using GroupKey = std::pair<std::string, Role>;

std::map<GroupKey, Group> group(const Checkpoint& checkpoint, const Model& model) {
  std::map<GroupKey, Group> groups;
  for (size_t i = 0; i < model.params.size(); ++i) {
    const Weight& weight = model.table.weights()[i];
    Group& entry = groups[{weight.format.name, model.params[i].role}];
    ++entry.tensors;
    entry.bytes += weight.stored_bytes(checkpoint);
    entry.elements += weight.elements();
    ++entry.shapes[fmt::format("[{}]", fmt::join(weight.shape, ", "))];
  }
  return groups;
}

std::string commonest_shape(const Group& entry) {
  const auto most = std::max_element(entry.shapes.begin(), entry.shapes.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return entry.shapes.size() == 1 ? most->first : fmt::format("{} and {} more", most->first, entry.shapes.size() - 1);
}

Json inspect_json(const Checkpoint& checkpoint, const Model& model, const std::map<GroupKey, Group>& groups,
                  uint64_t bytes, const Findings& findings) {
  Json json{{"family", model.family == nullptr ? "unknown" : model.family_name},
            {"model_type", model.family_name},
            {"tensors", checkpoint.tensors().size()},
            {"weights", model.params.size()},
            {"bytes", bytes},
            {"files", checkpoint.files().size()}};
  json["formats"] = Json::array();
  for (const auto& [key, entry] : groups) {
    Json shapes = Json::object();
    for (const auto& [shape, count] : entry.shapes) shapes[shape] = count;
    json["formats"].push_back(Json{{"format", key.first},
                                   {"role", role_name(key.second)},
                                   {"tensors", entry.tensors},
                                   {"bytes", entry.bytes},
                                   {"elements", entry.elements},
                                   {"shapes", std::move(shapes)}});
  }
  json["notes"] = Json::array();
  for (const Finding& finding : findings)
    json["notes"].push_back(
        Json{{"severity", severity_name(finding.severity)}, {"rule", finding.rule}, {"message", finding.message}});
  return json;
}

std::string inspect_text(const Checkpoint& checkpoint, const Model& model, const std::map<GroupKey, Group>& groups,
                         uint64_t bytes, const Findings& findings) {
  std::string text = fmt::format(
      "{}: {}, {} weights in {} stored tensors, {} in {} file{}\n\n", printable(checkpoint.path().string()),
      model.family == nullptr ? fmt::format("unknown family ({})", printable(model.family_name)) : model.family_name,
      with_commas(model.params.size()), with_commas(checkpoint.tensors().size()), human_bytes(bytes),
      checkpoint.files().size(), checkpoint.files().size() == 1 ? "" : "s");
  std::vector<std::vector<std::string>> rows{{"format", "role", "weights", "elements", "size", "bits/weight", "shape"}};
  std::map<std::string, uint64_t> per_format;
  for (const auto& [key, entry] : groups) {
    const double bits =
        entry.elements == 0 ? 0 : static_cast<double>(entry.bytes) * 8 / static_cast<double>(entry.elements);
    rows.push_back({key.first, std::string(role_name(key.second)), with_commas(entry.tensors),
                    with_commas(entry.elements), human_bytes(entry.bytes), fmt::format("{:.3f}", bits),
                    commonest_shape(entry)});
    per_format[key.first] += entry.bytes;
  }
  text += table_text(rows) + "\n";
  for (const auto& [format, size] : per_format)
    text += fmt::format("{}: {} ({:.1f} %)\n", format, human_bytes(size),
                        bytes == 0 ? 0 : 100.0 * static_cast<double>(size) / static_cast<double>(bytes));
  for (const Finding& finding : findings)
    text += fmt::format("{}: {}: {}\n", severity_name(finding.severity), finding.rule, printable(finding.message));
  return text;
}

// Shards that are missing or listed wrongly are verify's to judge: what is there can be listed. A file that cannot be
// read is an error here too.
bool unreadable(const Finding& finding) {
  return finding.severity == Severity::kError && finding.rule != "missing-file" && finding.rule != "index-mismatch";
}

int inspect(const std::string& path, const CommonOptions& common) {
  Findings findings;
  const Checkpoint checkpoint = Checkpoint::scan(path, {ReadMode::kPread, false, common.thread_count()}, &findings);
  for (const Finding& finding : findings) {
    if (unreadable(finding)) throw error_of(finding);
  }
  const Model model = load_model(checkpoint, &findings);
  const auto groups = group(checkpoint, model);
  uint64_t bytes = 0;
  for (const StoredTensor& tensor : checkpoint.tensors()) bytes += tensor.bytes;
  if (common.json) {
    print_json(inspect_json(checkpoint, model, groups, bytes, findings));
  } else {
    print_out(inspect_text(checkpoint, model, groups, bytes, findings));
  }
  return kExitDone;
}

}  // namespace

std::function<int()> setup_inspect(CLI::App& app, CommonOptions& common) {
  auto path = std::make_shared<std::string>();
  app.add_option("path", *path, "a checkpoint folder, a .safetensors or a .gguf file")->required()->type_name("PATH");
  app.footer("Example:\n  nibble inspect ./Qwen3-30B-A3B");
  return [path, &common] { return inspect(*path, common); };
}

}  // namespace nibble
