#include "nibble/hardware/rate.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "nibble/base/parallel.h"

namespace nibble {

using Clock = std::chrono::steady_clock;

double rate_of(int threads, double seconds, const std::function<double(int thread)>& work) {
  // The system may have fewer threads than asked for: then the others give up waiting for the missing ones, whose
  // indices come when the measurement is over and count nothing.
  constexpr std::chrono::seconds kPatience{1};
  const auto give_up = Clock::now() + kPatience;
  std::atomic<int> arrived{0};
  std::atomic<bool> over{false};
  std::vector<double> rates(static_cast<size_t>(threads));
  parallel_for(rates.size(), threads, [&](uint64_t index) {
    if (over) return;
    ++arrived;
    while (arrived < threads && Clock::now() < give_up) std::this_thread::yield();
    const auto start = Clock::now();
    double done = 0;
    double took = 0;
    do {
      done += work(static_cast<int>(index));
      took = std::chrono::duration<double>(Clock::now() - start).count();
    } while (took < seconds);
    over = true;
    rates[index] = done / std::max(took, 1e-9);
  });
  double all = 0;
  for (const double rate : rates) all += rate;
  return all;
}

MeasuredRange rates_of(int passes, int threads, double seconds, const std::function<double(int thread)>& work) {
  MeasuredRange range;
  for (int pass = 0; pass < passes; ++pass) {
    const double rate = rate_of(threads, seconds, work);
    range.low = pass == 0 ? rate : std::min(range.low, rate);
    range.high = std::max(range.high, rate);
  }
  return range;
}

}  // namespace nibble
