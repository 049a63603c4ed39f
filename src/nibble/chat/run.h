// One rendering: what functions of the template's language need besides their arguments.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nibble/chat/value.h"

namespace nibble::jinja {

class Namespace;

class Run {
 public:
  Run(const ChatLimits& limits, const ChatClock& now) : budget(limits), clock(now) {}
  virtual ~Run() = default;

  virtual Value call(const Value& callee, Arguments arguments) = 0;

  Budget budget;
  const ChatClock clock;
  // Kept to the end: namespaces are the only values that could hold themselves.
  std::vector<std::shared_ptr<Namespace>> namespaces;
  uint32_t depth = 0;  // of values that are being written or compared
};

// Counts how deep a walk through values is, since namespaces can hold themselves.
class Deeper {
 public:
  explicit Deeper(Run& run) : run_(run) { run_.budget.check_depth(++run_.depth); }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;
  ~Deeper() { --run_.depth; }

 private:
  Run& run_;
};

// What Python would raise: TypeError, ValueError and their like, in its words where they help.
[[noreturn]] void fail(std::string message);
// The error of using an undefined value.
[[noreturn]] void fail_undefined(const Value& value);

}  // namespace nibble::jinja
