// How a chain ended under a candidate, as the statistics of durations see it.
//
// A chain whose answer has n tokens asks for n choices, at the positions 0 … n - 1. Times count choices: a candidate
// that leaves the chain at position d (d right choices before it) diverges at time d + 1; one that makes all n of them
// leaves at time n, ended, or censored where only a limit cut the chain. At time t those with `time` >= t are at risk.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace nibble {

enum class ChainEndKind : uint8_t {
  kDiverged,
  kEnded,     // reproduced whole, the answer ended by its own end token
  kCensored,  // reproduced as far as it goes: a limit cut it
};

struct ChainEnd {
  uint64_t time = 0;  // at least 1: a chain that asks for nothing has no end
  ChainEndKind kind = ChainEndKind::kEnded;
  uint64_t cluster = 0;  // chains of one prompt, table or seed, any number: drawn together by the bootstrap
};

// Of one curve; step functions, constant between points and after the last. `low`, `high`: a band of 95 %.
struct CurvePoint {
  uint64_t time = 0;
  double value = 0, low = 0, high = 0;
};
using Curve = std::vector<CurvePoint>;

}  // namespace nibble
