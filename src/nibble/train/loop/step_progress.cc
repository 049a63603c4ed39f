#include "nibble/train/loop/step_progress.h"

#include <fmt/format.h>

#include <utility>

#include "nibble/base/stopwatch.h"
#include "nibble/base/strings.h"

namespace nibble {
namespace {

constexpr double kWindow = 30;  // seconds

std::string time_text(double seconds) {
  if (seconds < 90) return fmt::format("{:.0f} s", seconds);
  if (seconds < 90.0 * 60) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

}  // namespace

StepProgress::StepProgress(std::function<double()> seconds) : seconds_(std::move(seconds)) {
  if (!seconds_) seconds_ = [watch = Stopwatch()] { return watch.seconds(); };
}

std::string StepProgress::step(uint64_t done, uint64_t of, double loss) {
  const double now = seconds_();
  recent_.emplace_back(now, done);
  while (recent_.size() > 2 && now - recent_[1].first > kWindow) recent_.pop_front();
  std::string text = fmt::format("step {} of {}, loss {:.4g}", with_commas(done), with_commas(of), loss);
  const auto [since, before] = recent_.front();
  if (done - before < 2) return text;
  const double pace = (now - since) / static_cast<double>(done - before);
  return text + fmt::format(", {:.3g} s a step, {} left", pace, time_text(pace * static_cast<double>(of - done)));
}

}  // namespace nibble
