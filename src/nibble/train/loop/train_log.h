// The log of a run: JSON Lines, one event a line, and the loss as a picture made from it.
//
//   {"event": "start", "name": …, "parameters": …, "data": …}
//   {"event": "baseline", "step": 0, "loss": …, "checkable": {…}}      rounded after training, before a step is trained
//   {"event": "step", "step": N, "loss": …, "balance": …, "gradient_norm": …, "learning_rate": …, "seconds": …}
//   {"event": "evaluate", "step": N, …}    {"event": "end", …}
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nibble/base/file.h"
#include "nibble/base/json.h"

namespace nibble {

class TrainLog {
 public:
  // Goes on with a file that is there: events of steps from `next_step` on, which a stopped run wrote behind its last
  // state, are taken out, as are those of its end. next_step 0: an empty log.
  TrainLog(const Path& path, uint64_t next_step);

  void add(const Json& event);
  // Puts the lines added since the last call behind those in the file.
  void flush();

  // The first event of this kind, or null.
  const Json* find(const std::string& event) const;

  struct Point {
    uint64_t step = 0;
    double loss = 0;
  };
  const std::vector<Point>& losses() const { return losses_; }

 private:
  void remember(const Json& event);

  Path path_;
  std::vector<Json> rare_;  // all events but steps
  std::vector<Point> losses_;
  std::string waiting_;
};

// The loss over the steps, both axes logarithmic, at most 64 points, each the mean of its steps with their range behind
// it. An SVG file of its own, colours included. Empty without a point.
std::string loss_curve(const std::string& name, const std::vector<TrainLog::Point>& losses);

}  // namespace nibble
