// The model that is planned for: a checkpoint folder or file, a config.json, or a bundled name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nibble/base/finding.h"
#include "nibble/ledger/kv_cache.h"
#include "nibble/ledger/param_counts.h"
#include "nibble/ledger/weights.h"
#include "nibble/models/family.h"

namespace nibble {

struct Subject {
  std::string name;        // as given
  bool is_folder = false;  // that holds the weights, or a file
  bool is_gguf = false;    // of them
  ModelSpec spec;
  std::vector<ParamSpec> params;  // stacked
  ParamCounts counts;
  KvCache cache;
  // How the release, or the checkpoint that lies there, holds its weights; empty if it is plain 16 bits.
  std::vector<WeightItem> released;
  std::string released_title;  // "A and B (released)", formats by their names
  FormatOf released_format;    // of every parameter, by a configuration; empty if it is plain 16 bits
  std::vector<std::string> notes;

  bool is_plain() const;  // no weight is quantized
};

// Error with the nearest names if `model` is neither a path nor a bundled name; naming the missing term if its
// architecture is unknown.
Subject load_subject(const std::string& model);

// The same from a config.json that was read.
Subject config_subject(const Json& config, const std::string& source_name);

// The weights in a target format, as `nibble quantize` makes them: routed experts (a model without any: the dense MLPs)
// in `target`, everything else as released where that is 8 bits or more, else in 16 bits. Of a folder that is all that
// lies there, by the bytes of its headers: float32 vectors, tables, copies of embedding and head, encoders.
std::vector<WeightItem> weigh_target(const Subject& subject, const Format& target);

}  // namespace nibble
