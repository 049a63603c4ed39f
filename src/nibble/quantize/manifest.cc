#include "nibble/quantize/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "nibble/base/file.h"
#include "nibble/base/hash.h"

namespace nibble {

Json tensor_row(const Checkpoint& source, const OutWeight& out, const QuantizeRequest& request, const OutResult& result,
                const std::map<uint32_t, std::string>& hashes, const Model& model) {
  Json row = Json::object();
  row["name"] = out.name;
  row["role"] = role_name(out.param.role);
  const bool by_rule = out.route == Route::kEncode || result.rounded_instead;
  row["action"] = action_name(result.rounded_instead ? Action::kQuantized : out.action);
  row["reason"] = out.reason;
  row["format"] = out.format.name;
  row["rule"] = by_rule && request.rule.rule != nullptr ? Json(request.rule.name()) : Json();
  const bool rounded = result.errors.count > 0;
  row["rel_rmse"] = rounded ? Json(result.errors.rel_rmse()) : Json();
  // JSON has no infinity: null says that nothing was lost.
  row["snr_db"] = rounded && std::isfinite(result.errors.snr_db()) ? Json(result.errors.snr_db()) : Json();
  if (!result.note.empty()) row["note"] = result.note;
  if (request.unify_scales && out.route == Route::kMove) add_scale_changes(result.scale_changes, &row);
  Json inputs = Json::object();
  uint32_t last = UINT32_MAX;
  for (const Piece& piece : out.pieces) {
    if (piece.weight == last) continue;
    last = piece.weight;
    for (const Part& part : model.table.weights()[piece.weight].parts) {
      const auto hash = hashes.find(part.tensor);
      if (hash != hashes.end()) inputs[source.tensors()[part.tensor].name] = hash->second;
    }
  }
  row["inputs_xxh3_128"] = std::move(inputs);
  return row;
}

std::string manifest_head(const Json& recipe, const Checkpoint& source, const std::vector<OutputFileRecord>& files,
                          bool sha256_inputs) {
  Json head = Json::object();
  head["contract"] = kContractVersion;
  head["nibble"] = kToolVersion;
  head["recipe"] = recipe;
  Json inputs = Json::array();
  for (const StoredFile& file : source.files()) {
    Json row{{"file", file.name}, {"bytes", file.bytes}};
    if (sha256_inputs) row["sha256"] = sha256_of_file(source.folder() / file.name);
    inputs.push_back(std::move(row));
  }
  head["inputs"] = std::move(inputs);
  Json outputs = Json::array();
  for (const auto& file : files)
    outputs.push_back(Json{{"file", file.name}, {"bytes", file.bytes}, {"sha256", file.sha256}});
  head["outputs"] = std::move(outputs);
  std::string text = head.dump(2);
  text.resize(text.size() - 2);  // "\n}"
  return text;
}

ManifestWriter::ManifestWriter(const Path& path, const std::string& head) : file_(path) {
  file_.add(head + ",\n  \"tensors\": [");
}

// A row a line, so that they stay readable and searchable.
void ManifestWriter::add(std::string_view row) {
  file_.add(empty_ ? "\n    " : ",\n    ");
  file_.add(row);
  empty_ = false;
}

void ManifestWriter::commit() {
  file_.add(empty_ ? "]\n}\n" : "\n  ]\n}\n");
  file_.commit();
}

uint64_t record_bytes(const Checkpoint& source, const Model& model, const OutputPlan& plan,
                      const QuantizeRequest& request, const Json& recipe, const std::vector<std::string>& side_names) {
  constexpr uint64_t kRow = 250;    // keys, punctuation, role, action, format, rule and two numbers of full length
  constexpr uint64_t kInput = 40;   // quotes and 32 digits
  constexpr uint64_t kFile = 200;   // with 64 digits
  constexpr uint64_t kHead = 1000;  // keys
  uint64_t rows = 0;
  for (const OutWeight& out : plan.outs) {
    rows += kRow + out.name.size() + out.reason.size();
    if (request.unify_scales && out.route == Route::kMove && out.format.two_level)
      rows += scale_changes_bytes(out.slices());
    uint32_t last = UINT32_MAX;
    for (const Piece& piece : out.pieces) {
      if (piece.weight == last) continue;
      last = piece.weight;
      for (const Part& part : model.table.weights()[piece.weight].parts)
        rows += kInput + source.tensors()[part.tensor].name.size();
    }
  }
  uint64_t files = 0;
  for (const StoredFile& file : source.files()) files += kFile + file.name.size();
  for (const OutShard& shard : plan.shards) files += kFile + shard.file_name.size();
  for (const std::string& name : side_names) files += kFile + name.size();
  return 2 * (rows + files + kHead + recipe.dump(2).size());
}

}  // namespace nibble
