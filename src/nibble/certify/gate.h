// Bounds on a certificate, as an exit code: "flip_rate<=0.02,horizon>=256".
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nibble {

struct GateBound {
  std::string name;
  bool at_most = false;  // else at least
  double bound = 0;
};

// Comma-separated NAME<=NUMBER or NAME>=NUMBER. Error (of usage) for anything else, and for a name that is not one of
// `names`.
std::vector<GateBound> parse_gate(std::string_view text, const std::vector<std::string>& names);

// One line for each bound that does not hold: name, value, bound. A value that does not exist (nullopt) and NaN hold
// none.
std::vector<std::string> failed_bounds(const std::vector<GateBound>& bounds,
                                       const std::function<std::optional<double>(std::string_view name)>& value);

}  // namespace nibble
