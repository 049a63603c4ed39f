// "step 120 of 3,000, loss 2.310, 0.82 s a step, 39 min left". The remaining time is that of as many steps as are left
// at the pace of the last 30 s; none is given before two steps.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <utility>

namespace nibble {

class StepProgress {
 public:
  // `seconds` never goes back; empty: the steady clock.
  explicit StepProgress(std::function<double()> seconds = {});
  // What to show once `done` of `of` steps are done.
  std::string step(uint64_t done, uint64_t of, double loss);

 private:
  std::function<double()> seconds_;
  std::deque<std::pair<double, uint64_t>> recent_;  // when so many steps were done
};

}  // namespace nibble
