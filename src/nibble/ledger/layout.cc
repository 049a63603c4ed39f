#include "nibble/ledger/layout.h"

namespace nibble {

std::string Layout::name() const {
  std::string name;
  const auto add = [&](const char* what, uint64_t ways) {
    if (ways == 1) return;
    if (!name.empty()) name += " x ";
    name.append(what).append(" ").append(std::to_string(ways));
  };
  add("TP", tp);
  add("EP", ep);
  add("PP", pp);
  add("DP", dp);
  return name.empty() ? "one device" : name;
}

}  // namespace nibble
