// Resampling of whole clusters with replacement. Never of tokens, and never of chains that share a prompt: choices
// along a chain depend on each other, and so do chains from one start.
//
//   const Band band = bootstrap_band(runs.size(), {.resamples = 1000, .seed = 7}, [&](std::span<const uint32_t> w) {
//     return weighted_mean(runs, w);
//   });
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace nibble {

struct BootstrapOptions {
  uint64_t resamples = 1000;  // 0: no bands
  uint64_t seed = 0;
};

struct Band {
  double low = 0, high = 0;
};

// How often each of `clusters` is drawn in resample `index`: sums to `clusters`. By counter, of (seed, index, draw)
// alone: draw j takes cluster ⌊u · clusters⌋ with u = random_uniform(random_bits(seed, index), j).
std::vector<uint32_t> resample_weights(uint64_t clusters, const BootstrapOptions& options, uint64_t index);

// 2.5 and 97.5 percent of the values, linearly interpolated between order statistics (numpy's default). Values that are
// not numbers are left out; none left: NaN. Reorders `values`, and takes what it leaves out from them.
Band percentile_band(std::vector<double>* values);

// Band of `statistic`, which is computed from the clusters' weights. Fewer than two clusters or no resamples: its value
// at weights of 1.
Band bootstrap_band(uint64_t clusters, const BootstrapOptions& options,
                    const std::function<double(std::span<const uint32_t> weights)>& statistic);

// The same of `count` statistics, which one call computes together into `values` (count of them, all to be written).
// The calls of a resample all have the same weights; each resample is computed several times where the values of all
// would not fit into 128 MiB.
using Statistics = std::function<void(std::span<const uint32_t> weights, std::span<double> values)>;
std::vector<Band> bootstrap_bands(uint64_t clusters, const BootstrapOptions& options, uint64_t count,
                                  const Statistics& statistics);

// Renumbers clusters 0 … count - 1 in order of appearance; returns the count.
uint64_t number_clusters(std::span<uint64_t> clusters);

}  // namespace nibble
