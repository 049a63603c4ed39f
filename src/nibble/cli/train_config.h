// The options of `nibble train` that say what to train by a configuration, and the request made from them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "nibble/base/json.h"

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11's name
class App;
}

namespace nibble {

struct TrainConfigArgs {
  std::optional<std::string> config, recipe, source, out, device;
  bool resume = false, allow_worse = false, recipes = false;
  uint64_t stop_after = 0;

  bool given() const { return config || recipe || recipes; }
};

void add_train_config_options(CLI::App& app, TrainConfigArgs* args);

// Of train/loop/config_kind.cc. UsageError unless there is one of configuration and recipe; Error for a file that
// cannot be read.
Json train_config_request(const TrainConfigArgs& args);

}  // namespace nibble
