// The variable `loop` of a loop over values that may come one by one.
#pragma once

#include <optional>

#include "nibble/chat/calls.h"

namespace nibble::jinja {

class Loop final : public Object {
 public:
  Loop(IteratorPtr source, std::optional<int64_t> length) : source_(std::move(source)), length_(length) {}

  bool next(Run& run, Value* out);
  // The loop is over: what it held goes, so that nothing can hold itself through it.
  void finish();

  std::string_view type_name() const override { return "LoopContext"; }
  Value attribute(Run& run, std::string_view name) override;
  std::optional<int64_t> length(Run& run) override;

  Value cycle(Call& call) const;
  bool is_changed(Run& run, Values values);

 private:
  bool peek(Run& run);
  Value neighbour(const char* which, const Value& value, bool is_there) const;

  IteratorPtr source_;
  std::optional<int64_t> length_;
  int64_t index0_ = -1;
  Value before_{Missing{}}, current_{Missing{}}, after_{Missing{}}, last_changed_{Missing{}};
};

}  // namespace nibble::jinja
