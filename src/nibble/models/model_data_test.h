// Configurations of released models for tests (data/models, tests/data/models), parsed by their family.
#pragma once

#include <string>

#include "nibble/base/file.h"
#include "nibble/base/json.h"
#include "nibble/models/family.h"

namespace nibble::testing {

Path model_data(const std::string& file);        // in tests/data/models
Json model_config(const std::string& model);     // "qwen3-30b-a3b"
ModelSpec model_spec(const std::string& model);  // the same, parsed
const Family& family_of(const ModelSpec& spec);
uint64_t elements(const ParamSpec& param);

}  // namespace nibble::testing
