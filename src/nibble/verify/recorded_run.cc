#include "nibble/verify/recorded_run.h"

#include <nlohmann/json.hpp>

#include "nibble/base/error.h"
#include "nibble/quantize/manifest.h"

namespace nibble {
namespace {

constexpr uint64_t kLimit = uint64_t{1} << 30;  // as in stored_manifest.cc

Error malformed(const std::string& source, std::string message) {
  return std::move(Error(std::move(message))
                       .file(source)
                       .way_out("copy nibble.json again from where the checkpoint was made")
                       .way_out("verify without --rederive"));
}

const Json& member(const Json& root, const char* key, const std::string& source) {
  const auto found = root.find(key);
  if (found == root.end() || found->is_null())
    throw malformed(source, std::string("the manifest lacks `") + key + "`").value("field", std::string(key));
  return *found;
}

void check_contract(const Json& root, const std::string& source) {
  const Json& contract = member(root, "contract", source);
  if (contract == Json(kContractVersion)) return;
  throw Error("the checkpoint was made under another contract version: the same recipe gives other bytes now")
      .file(source)
      .value("recorded", contract.is_string() ? contract.get<std::string>() : contract.dump())
      .value("this_nibble", kContractVersion)
      .way_out("verify with the version of nibble that made it")
      .way_out("quantize again from the source");
}

void read_rows(const Json& rows, const std::string& source, RecordedRun* run) {
  if (!rows.is_array()) throw malformed(source, "`tensors` of the manifest is no list");
  for (const Json& row : rows) {
    if (!row.is_object()) throw malformed(source, "an entry of the manifest's tensors is no JSON object");
    const auto name = json_string(row, "name", source);
    if (!name) throw malformed(source, "an entry of the manifest's tensors lacks `name`");
    if (!run->rows.emplace(*name, row.dump()).second)
      throw malformed(source, "the manifest records a tensor twice").tensor(*name);
  }
}

RecordedRun run_of(const Json& root, const std::string& source) {
  if (!root.is_object()) throw malformed(source, "the manifest is no JSON object");
  check_contract(root, source);
  RecordedRun run;
  run.path = source;
  const auto tool = json_string(root, "nibble", source);
  if (!tool) throw malformed(source, "the manifest lacks `nibble`, the version that wrote it").value("field", "nibble");
  run.tool = *tool;
  const Json& recipe = member(root, "recipe", source);
  run.recipe = read_recipe(recipe, source);
  run.recipe_text = recipe.dump();
  read_rows(member(root, "tensors", source), source, &run);
  return run;
}

}  // namespace

RecordedRun read_recorded_run(const Path& folder) {
  const Path path = folder / kManifestName;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    throw Error("no manifest: nothing records how this checkpoint was made")
        .file(path.string())
        .way_out("copy nibble.json from where the checkpoint was made")
        .way_out("verify without --rederive");
  }
  return run_of(read_json(path, kLimit), path.string());
}

RecordedRun parse_recorded_run(std::string_view text, const std::string& source_name) {
  return run_of(parse_json(text, source_name), source_name);
}

}  // namespace nibble
