#include "nibble/train/export/packed.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "nibble/base/error.h"
#include "nibble/quantize/quantize.h"
#include "nibble/train/export/rounded_roles.h"
#include "nibble/train/model/dense_files.h"

namespace nibble {
namespace {

void remove_folder(const Path& folder) {
  std::error_code failed;
  std::filesystem::remove_all(folder, failed);
  if (!failed) return;
  throw Error("an earlier export cannot be removed")
      .file(folder.string())
      .value("reason", failed.message())
      .way_out("remove it by hand, or choose another folder");
}

}  // namespace

Json dense_config(const Json& source) {
  Json config = source;
  for (const char* key : {"quantization_config", "compression_config"}) config.erase(key);
  const char* key = config.contains("dtype") ? "dtype" : "torch_dtype";
  config[key] = "bfloat16";
  return config;
}

void export_dense(const Path& folder, const Json& config, const std::vector<Path>& companions,
                  const TrainedTensors& tensors) {
  remove_folder(folder);
  write_dense(folder, config, tensors);
  for (const Path& companion : companions) copy_atomically(companion, folder / companion.filename());
}

void export_packed(const Path& dense, const Path& folder, const TrainedTensors& tensors, const RoundingConfig& rounding,
                   int threads) {
  remove_folder(folder);
  QuantizeRequest request;
  request.source = dense;
  request.target = folder;
  request.format = rounding.format;
  request.rule = rounding.rule;
  request.rule_given = true;
  request.layout = layout_of_export(tensors, rounding);
  for (const Role role : rounded_roles(tensors, rounding)) request.include.emplace_back(role_name(role));
  request.threads = threads;
  request.quiet = true;
  quantize(request);
}

}  // namespace nibble
