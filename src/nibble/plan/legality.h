// Can a model be cut that way? Decided from the configuration, before a byte is read: heads, experts and layers must
// come out whole, and a cut inside a scale's block would leave ranks with parts of a block, which kernels refuse or
// read wrongly.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "nibble/ledger/layout.h"
#include "nibble/ledger/sharding.h"
#include "nibble/ledger/weight_groups.h"

namespace nibble {

struct LayoutRefusal {
  std::string reason;  // with the arithmetic
  std::vector<std::pair<std::string, std::string>> values;
  std::vector<std::string> ways_out;
};

// The cuts that a model's weights ask about, once each: made once, asked for many layouts.
class LayoutRules {
 public:
  LayoutRules(const ModelSpec& spec, const WeightGroups& weights);

  // What forbids the layout; empty: it is legal. With `first_only`, at most one.
  std::vector<LayoutRefusal> check(const Layout& layout, bool first_only = false) const;

 private:
  struct Axis {
    Role role;
    CutAxis axis;
    uint64_t width, block;
    uint64_t kv_heads;  // of keys and values, 0 for others
    bool expert;
    std::string format;
  };
  std::vector<uint64_t> legal_tp(const Axis& axis) const;
  std::vector<std::string> ways_out(const Axis& axis, uint64_t parts) const;
  void check_axis(const Axis& axis, const Layout& layout, std::vector<LayoutRefusal>* out) const;
  void check_counts(const Layout& layout, std::vector<LayoutRefusal>* out) const;

  uint64_t layers_, experts_;
  std::vector<std::pair<std::string, uint64_t>> heads_;  // query heads, by kind of layer
  std::vector<uint64_t> kv_heads_;
  std::vector<Axis> axes_;
};

}  // namespace nibble
