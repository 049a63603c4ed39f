// Curves over chain ends: which share has left the reference after n tokens, and how quickly.
//
// Each curve has a point for every time at which it changes, ascending, and one at the last time of all; no ends, no
// points. Bands come from the bootstrap over clusters (bootstrap.h), numbered in the order in which `ends` names them:
// percentiles 2.5 and 97.5 of the curve's value at the same time; with fewer than two clusters low = high = value. A
// resample's curve stays where it is after the last of its chains, as the curves themselves do.
//
// Values are exact shares, rounded once, up to the first censoring: half of the chains is 0.5.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nibble/certify/statistics/bootstrap.h"
#include "nibble/certify/statistics/chain_end.h"

namespace nibble {

// Cumulative incidence of divergence with "ended" as a competing event (Aalen-Johansen): the probability of having
// diverged by time t. Σ over times s <= t of S(s-) · d(s) / n(s), where n is at risk, d diverges, and S is the
// probability of neither having diverged nor ended before: Π (1 - (d + e) / n), e ends. Events come before censorings
// at equal times. Equal to the plain share where nothing is censored. Before its first point: 0.
Curve divergence_incidence(std::span<const ChainEnd> ends, const BootstrapOptions& bootstrap);

// "If answers did not end": Kaplan-Meier with ends censored, Π (1 - d(s) / n(s)), events before censorings at equal
// times. Before its first point: 1.
Curve agreement_survival(std::span<const ChainEnd> ends, const BootstrapOptions& bootstrap);

// Hazard among chains still running: divergences over choices, within [from, to) positions.
struct HazardBin {
  uint64_t from = 0, to = 0;
  uint64_t choices = 0, divergences = 0;
  double value = 0, low = 0, high = 0;  // divergences / choices, and its band over the resamples that have choices here
};
// Bins [0, 1), [1, 2), [2, 4), [4, 8) … up to the last position at which a chain still runs; the last one is cut there.
std::vector<HazardBin> divergence_hazard(std::span<const ChainEnd> ends, const BootstrapOptions& bootstrap);

}  // namespace nibble
