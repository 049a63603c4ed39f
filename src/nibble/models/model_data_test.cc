#include "nibble/models/model_data_test.h"

#include <nlohmann/json.hpp>

#include "nibble/base/check.h"

namespace nibble::testing {

Path model_data(const std::string& file) { return Path(NIBBLE_SOURCE_DIR) / "tests" / "data" / "models" / file; }

Json model_config(const std::string& model) {
  const std::string file = model + ".json";
  // Files that transformers saved again lie beside the other test data.
  const Path bundled = Path(NIBBLE_SOURCE_DIR) / "data" / "models" / file;
  return read_json(std::filesystem::exists(bundled) ? bundled : model_data(file));
}

ModelSpec model_spec(const std::string& model) {
  const Json config = model_config(model);
  const Family* family = find_family(config);
  NIBBLE_CHECK(family != nullptr);
  return family->parse(config, model + ".json");
}

const Family& family_of(const ModelSpec& spec) {
  for (const Family* family : families()) {
    if (family->name() == spec.family) return *family;
  }
  NIBBLE_CHECK(false);
  return *families()[0];
}

uint64_t elements(const ParamSpec& param) {
  uint64_t product = 1;
  for (const uint64_t dim : param.shape) product *= dim;
  return product;
}

}  // namespace nibble::testing
