#include "nibble/numerics/formats/typical_error.h"

#include <cmath>

#include "nibble/base/check.h"

namespace nibble {

double error_at_group(uint64_t group, std::initializer_list<ErrorAtGroup> points) {
  NIBBLE_CHECK(points.size() > 0);
  const ErrorAtGroup* below = points.begin();
  if (group <= below->group) return below->rel_rmse;
  for (const ErrorAtGroup& above : points) {
    if (group <= above.group && above.group > below->group) {
      const double low = std::log2(static_cast<double>(below->group));
      const double high = std::log2(static_cast<double>(above.group));
      const double weight = (std::log2(static_cast<double>(group)) - low) / (high - low);
      return below->rel_rmse + weight * (above.rel_rmse - below->rel_rmse);
    }
    below = &above;
  }
  return below->rel_rmse;
}

}  // namespace nibble
