#include "nibble/base/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>
#include <utility>

#include "nibble/base/error.h"
#include "nibble/base/strings.h"

namespace nibble {
namespace {

constexpr double kWindowSeconds = 30;
constexpr double kPlainLineSeconds = 30;
constexpr double kRedrawSeconds = 0.1;
constexpr double kFirstEstimateSeconds = 2;
constexpr size_t kBarWidth = 24;

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

struct Progress::State {
  std::string what;
  uint64_t total = 0;
  bool quiet = false;
  ProgressOutput output;
  double start = 0, last_draw = 0;
  std::atomic<uint64_t> done{0};
  std::mutex mutex;
  std::deque<std::pair<double, uint64_t>> samples;  // (second, bytes done), the window's first one in front
  bool drawn = false;

  std::string remaining(double now, uint64_t bytes) {
    samples.emplace_back(now, bytes);
    while (samples.size() > 2 && now - samples.front().first > kWindowSeconds) samples.pop_front();
    const double seconds = now - samples.front().first;
    if (now - start < kFirstEstimateSeconds || seconds <= 0) return "";
    const double rate = static_cast<double>(bytes - samples.front().second) / seconds;
    if (rate <= 0 || bytes > total) return "";
    const double left = static_cast<double>(total - bytes) / rate;
    return fmt::format(", {}/s, {:.0f} s left", human_bytes(static_cast<uint64_t>(rate)), left);
  }

  void draw(double now) {
    const uint64_t bytes = done.load(std::memory_order_relaxed);
    const double share = total == 0 ? 1 : std::min(1.0, static_cast<double>(bytes) / static_cast<double>(total));
    const std::string rest = remaining(now, bytes);
    last_draw = now;
    drawn = true;
    if (output.terminal) {
      const auto filled = static_cast<size_t>(share * kBarWidth);
      put(fmt::format("\r\x1b[K{} [{}{}] {:.0f} %{}", what, std::string(filled, '#'),
                      std::string(kBarWidth - filled, '.'), share * 100, rest));
    } else {
      put(fmt::format("{}: {:.0f} % of {}{}\n", what, share * 100, human_bytes(total), rest));
    }
  }

  void put(const std::string& text) const {
    std::fputs(text.c_str(), output.file);
    std::fflush(output.file);
  }
};

ProgressOutput standard_progress_output() { return {stderr, isatty(STDERR_FILENO) == 1, steady_seconds}; }

Progress::Progress(const std::string& what, uint64_t total_bytes, bool quiet)
    : Progress(what, total_bytes, quiet, standard_progress_output()) {}

Progress::Progress(const std::string& what, uint64_t total_bytes, bool quiet, ProgressOutput output)
    : state_(std::make_unique<State>()) {
  state_->what = printable(what);
  state_->total = total_bytes;
  state_->quiet = quiet;
  state_->output = std::move(output);
  state_->start = state_->last_draw = state_->output.seconds();
  state_->samples.emplace_back(state_->start, 0);
}

Progress::~Progress() {
  if (state_->drawn && state_->output.terminal) state_->put("\r\x1b[K");
}

void Progress::add(uint64_t bytes) {
  state_->done.fetch_add(bytes, std::memory_order_relaxed);
  if (state_->quiet) return;
  const std::unique_lock lock(state_->mutex, std::try_to_lock);
  if (!lock.owns_lock()) return;
  const double now = state_->output.seconds();
  if (now - state_->last_draw >= (state_->output.terminal ? kRedrawSeconds : kPlainLineSeconds)) state_->draw(now);
}

}  // namespace nibble
