// A whole run of `nibble train CONFIG.json`: reads, judges the rounded beginning, trains, judges the end, exports.
//
//   OUT/log.jsonl, OUT/loss.svg    what happened (train_log.h)
//   OUT/state.safetensors          what `--resume` goes on from (state.h)
//   OUT/dense                      the trained weights in BF16
//   OUT/packed                     quantized from them with the format and rule of the training: its decoded values are
//                                  those that the passes multiplied, to the bit
#pragma once

#include <optional>
#include <string>

#include "nibble/base/file.h"
#include "nibble/base/json.h"
#include "nibble/train/kind.h"
#include "nibble/train/loop/config.h"
#include "nibble/train/loop/evaluate.h"

namespace nibble {

struct TrainRequest {
  TrainConfig config;
  Path out;
  bool resume = false;       // go on from OUT/state.safetensors; without one, begin
  bool allow_worse = false;  // export although rounding the beginning would have been better
  uint64_t stop_after = 0;   // steps of this call; 0: all. The state is kept, nothing is exported
  int threads = 1;
};

struct TrainOutcome {
  uint64_t steps = 0;  // trained so far
  bool finished = false;
  double seconds = 0;  // of this call
  double last_loss = 0;
  uint64_t parameters = 0;
  std::optional<Evaluation> baseline, trained;
  std::string verdict;  // the comparison of the two; "" without a baseline
  std::optional<Path> dense, packed;
};

// Error for what cannot be trained, before a step; for a folder that holds a run already, without `resume`; and at the
// end, with OUT/dense written, if the trained weights are worse than the baseline and that is not allowed.
TrainOutcome run_training(const TrainRequest& request, const TrainHost& host);

Json outcome_json(const TrainRequest& request, const TrainOutcome& outcome);
std::string outcome_text(const TrainRequest& request, const TrainOutcome& outcome);

}  // namespace nibble
