// Weights of which more is known than statistics can tell. A rule that infers a fault from how weights usually look is
// wrong about unusual ones, so it leaves out what is proved:
//   * the comparison with BASE found it as near as its format explains; or
//   * this program rounded it, as the manifest's rule says, and all its bytes are the recorded ones.
// What was only moved or copied has its source's faults, be that recorded or seen in a BASE of the same format.
#pragma once

#include <cstdint>
#include <vector>

namespace nibble {

struct VerifyContext;

// How much is known, each more than the one before.
enum class Proof : uint8_t {
  kNone,
  kLike,      // like BASE: no code and no scale can have been read for something else
  kNear,      // as near to BASE as a rule of its format comes: nor can scales be off by less than a factor of two
  kRecorded,  // the very bytes of the recorded rule
};

// One per weight of the model's table.
std::vector<Proof> proofs_of_weights(const VerifyContext& context);

}  // namespace nibble
