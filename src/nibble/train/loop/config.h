// What `nibble train CONFIG.json` is to do: the file as data, checked. docs/train_config.md lists the keys.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nibble/base/file.h"
#include "nibble/base/json.h"
#include "nibble/models/role.h"
#include "nibble/numerics/format.h"
#include "nibble/numerics/scale_rule.h"
#include "nibble/train/loop/rollouts.h"

namespace nibble {

// Which weights are trained as the values that they will have in low bits, and how these are made.
struct RoundingConfig {
  Format format;
  NamedRule rule;
  std::string layout;                 // "": as `quantize` chooses it
  std::vector<Role> roles;            // empty: routed experts, of a model without experts the dense MLPs
  std::optional<Format> activations;  // of what meets these weights; none: left in float32
  // False: trained in full precision and rounded for the judgement and the export alone, which is what rounding after
  // so much more training gives.
  bool during_training = true;
};

struct DataConfig {
  std::optional<std::string> task;   // "table-walk:symbols=64": one of the three …
  std::optional<Path> tokens, text;  // … chains as certify takes them; a text, through the source's tokenizer
  uint64_t sequence = 512;           // tokens
  uint64_t held_out_every = 20;      // windows of a file: one in so many is not trained on
};

enum class Objective : uint8_t {
  kNextToken,
  kDistill,    // divergence from a 16-bit teacher
  kReinforce,  // policy gradient on checkable chains that the served weights draw (rollouts.h)
};
enum class ScheduleKind : uint8_t { kConstant, kOneCycle };

struct OptimizerConfig {
  double learning_rate = 1e-3;  // the highest one
  ScheduleKind schedule = ScheduleKind::kOneCycle;
  double warmup = 0.3;         // of the steps; one_cycle only
  double weight_decay = 0.01;  // of matrices
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double clip = 1;  // of the gradients' norm over all weights; 0: none
};

struct EvaluateConfig {
  uint64_t chains = 256, length = 512;  // of a task: free-running chains
  uint64_t windows = 64;                // held-out sequences whose loss is measured
  uint64_t every = 0;                   // steps; 0: at the beginning and the end
};

struct TrainConfig {
  std::string name;             // for messages and the log
  std::optional<Path> source;   // a checkpoint to go on from, or …
  std::unique_ptr<Json> model;  // … a config.json of a model to begin; null with a source
  DataConfig data;
  std::optional<RoundingConfig> rounding;  // none: training in full precision
  Objective objective = Objective::kNextToken;
  std::optional<Path> teacher;  // kDistill; the source if it is not given
  double temperature = 1;       // of both sides' softmax; of the draws
  RolloutOptions rollouts;      // kReinforce; their temperature is the one above
  double ratio_clip = 0.2;      // kReinforce: how far the ratio of a choice's chances, now to when drawn, may push
  std::vector<Role> trained;    // roles that are trained; empty: all
  OptimizerConfig optimizer;
  double balance_loss = 0;  // weight of the router's loss (balance_loss in model/experts.h)
  uint64_t steps = 1000, batch = 8, seed = 0;
  EvaluateConfig evaluate;
  uint64_t checkpoint_every = 100;  // steps between states that `--resume` goes on from; 0: none but the last
  std::string device = "cpu";
};

// Error naming the file and the key for keys that are not known (with the nearest), for values out of range, with the
// numbers, for a group that is trained and another that is exported, and unless there is exactly one of source and
// model, and of task, tokens and text. Relative paths are the configuration's folder's.
TrainConfig parse_train_config(const Json& json, const std::string& file_name, const Path& folder);

// The bundled configurations (data/recipes) by name, sorted; Error with the nearest ones for another name.
std::vector<std::string_view> recipe_names();
TrainConfig load_recipe(std::string_view name);

// Everything that decides about the weights, in one text: a state belongs to the run with the same one.
std::string config_fingerprint(const TrainConfig& config);

}  // namespace nibble
