#include "nibble/kernels/cpu/int8_group.h"

#include "nibble/base/check.h"
#include "nibble/base/cpu_features.h"

namespace nibble {

Int8GroupLoop int8_group_loop(uint64_t group, bool interleaved) {
  const Int8GroupLoop loop = best_isa() == Isa::kAvx512 ? int8_group_loop_avx512(group, interleaved)
                                                        : int8_group_loop_reference(group, interleaved);
  NIBBLE_CHECK(loop != nullptr);
  return loop;
}

}  // namespace nibble
