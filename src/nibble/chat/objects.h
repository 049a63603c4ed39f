// Objects that templates make for themselves, and the names that every template knows.
#pragma once

#include <map>
#include <string>

#include "nibble/chat/calls.h"

namespace nibble::jinja {

// The one value that changes: attributes, set with {% set ns.name = value %}.
class Namespace final : public Object {
 public:
  std::string_view type_name() const override { return "Namespace"; }
  Value attribute(Run& run, std::string_view name) override;
  void repr(Run& run, TextBuilder& out) override;
  void set(Run& run, const std::string& name, Value value);
  void clear() { attributes_.clear(); }

 private:
  std::vector<std::pair<std::string, Value>> attributes_;  // in order of insertion
  std::map<std::string, size_t, std::less<>> places_;
};

// A function of the table of globals.
Value global_function(const Native& native);

}  // namespace nibble::jinja
