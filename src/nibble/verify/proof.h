// Weights of which more is known than statistics can tell. A rule that infers a fault from how weights usually look is
// wrong about unusual ones, so it leaves out what is proved:
//   * the comparison with BASE found it as near as its format explains; or
//   * this program rounded it, as the manifest's rule says, and all its bytes are the recorded ones. What was only
//     moved or copied has its source's faults, recorded or not.
#pragma once

#include <vector>

#include "nibble/verify/rule.h"

namespace nibble {

// One per weight of the model's table.
std::vector<bool> proved_weights(const VerifyContext& context);

}  // namespace nibble
