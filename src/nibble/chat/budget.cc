#include "nibble/chat/budget.h"

#include "nibble/base/error.h"
#include "nibble/base/strings.h"

namespace nibble::jinja {

void Budget::refuse_steps() const {
  throw Error("the template takes too many steps")
      .value("limit", limits_.steps)
      .way_out("look for a loop in the template that grows with its own output");
}

void Budget::refuse_size(uint64_t bytes) const {
  throw Error("the template makes a text that is too long")
      .value("bytes", bytes)
      .value("limit", limits_.output_bytes)
      .way_out("shorten the conversation, or look for a repetition in the template");
}

void Budget::refuse_depth() const {
  throw Error("the template nests too deeply")
      .value("limit", limits_.nesting)
      .way_out("look for a macro that calls itself without an end");
}

void Budget::refuse_memory(uint64_t bytes) {
  live_ -= bytes;
  throw Error("the template needs too much memory")
      .value("limit", human_bytes(limits_.memory_bytes))
      .way_out("shorten the conversation, or look for a list in the template that grows without an end");
}

}  // namespace nibble::jinja
