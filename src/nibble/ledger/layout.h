// How a model is spread over GPUs.
//
// dp groups of tp GPUs hold the attention (and everything else that is no routed expert) once each, cut tp ways; pp
// such stages hold a run of layers each. The dp · tp GPUs of a stage deal the routed experts out over ep ranks; with ep
// above 1 every expert is cut over the dp · tp / ep GPUs of its rank, with ep 1 over tp.
#pragma once

#include <cstdint>
#include <string>

namespace nibble {

struct Layout {
  uint64_t tp = 1, ep = 1, pp = 1, dp = 1;

  uint64_t stage_gpus() const { return tp * dp; }
  uint64_t gpus() const { return tp * dp * pp; }
  // Without dealing out, every dp group has all experts of its own.
  bool copies_experts() const { return ep == 1 && dp > 1; }
  // That hold one copy of a layer's experts between them.
  uint64_t expert_gpus() const { return ep == 1 ? tp : stage_gpus(); }
  uint64_t expert_parts() const { return ep == 1 ? tp : stage_gpus() / ep; }
  std::string name() const;  // "TP 8", "TP 4 x EP 8 x DP 2", "one device"
  friend bool operator==(const Layout&, const Layout&) = default;
};

}  // namespace nibble
