// Builds without CUDA link this instead of moe_launch.cu.
#include "nibble/base/error.h"
#include "nibble/kernels/cuda/moe_layer.h"

namespace nibble {

std::string moe_device_obstacle() { return "built without CUDA"; }

void launch_moe_layer(const MoeLayer& /*layer*/, const MoeCall& /*call*/, void* /*stream*/) {
  throw Error("this program was built without CUDA").way_out("configure with `cmake --preset cuda`");
}

}  // namespace nibble
