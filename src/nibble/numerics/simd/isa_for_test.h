// Runs a piece of a test under one instruction set after the other, through NIBBLE_ISA.
#pragma once

#include <stdlib.h>

#include <string>
#include <vector>

#include "nibble/base/cpu_features.h"

namespace nibble {

class ScopedIsa {
 public:
  explicit ScopedIsa(Isa isa) {
    const char* before = ::getenv("NIBBLE_ISA");
    had_one_ = before != nullptr;
    if (had_one_) before_ = before;
    ::setenv("NIBBLE_ISA", std::string(isa_name(isa)).c_str(), 1);
  }
  ~ScopedIsa() {
    if (had_one_) {
      ::setenv("NIBBLE_ISA", before_.c_str(), 1);
    } else {
      ::unsetenv("NIBBLE_ISA");
    }
  }
  ScopedIsa(const ScopedIsa&) = delete;
  ScopedIsa& operator=(const ScopedIsa&) = delete;

 private:
  bool had_one_ = false;
  std::string before_;
};

// What this processor has beyond the scalar reference. May be empty: the tests that use it then compare nothing, and
// say so.
inline std::vector<Isa> vector_isas() {
  std::vector<Isa> isas;
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx512}) {
    const ScopedIsa scope(isa);
    if (best_isa() == isa) isas.push_back(isa);
  }
  return isas;
}

}  // namespace nibble
