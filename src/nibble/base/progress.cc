#include "nibble/base/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <deque>
#include <mutex>

#include "nibble/base/strings.h"

namespace nibble {
namespace {
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;
constexpr double kWindowSeconds = 30;
constexpr double kPlainLineSeconds = 30;
constexpr double kRedrawSeconds = 0.1;
constexpr double kFirstEstimateSeconds = 2;
}  // namespace

struct Progress::State {
  std::string what;
  uint64_t total = 0;
  bool quiet = false;
  bool terminal = false;
  std::atomic<uint64_t> done{0};
  std::mutex mutex;
  Clock::time_point start = Clock::now(), last_draw = Clock::now();
  std::deque<std::pair<Clock::time_point, uint64_t>> samples;
  bool drawn = false;

  std::string remaining(Clock::time_point now, uint64_t bytes) {
    samples.emplace_back(now, bytes);
    while (samples.size() > 2 && Seconds(now - samples.front().first).count() > kWindowSeconds) samples.pop_front();
    const double seconds = Seconds(now - samples.front().first).count();
    if (Seconds(now - start).count() < kFirstEstimateSeconds || seconds <= 0) return "";
    const double rate = static_cast<double>(bytes - samples.front().second) / seconds;
    if (rate <= 0 || bytes > total) return "";
    const double left = static_cast<double>(total - bytes) / rate;
    return fmt::format(", {}/s, {:.0f} s left", human_bytes(static_cast<uint64_t>(rate)), left);
  }

  void draw(Clock::time_point now) {
    const uint64_t bytes = done.load(std::memory_order_relaxed);
    const double share = total == 0 ? 1 : std::min(1.0, static_cast<double>(bytes) / static_cast<double>(total));
    const std::string rest = remaining(now, bytes);
    last_draw = now;
    drawn = true;
    if (terminal) {
      const auto filled = static_cast<size_t>(share * 24);
      fmt::print(stderr, "\r\x1b[K{} [{}{}] {:.0f} %{}", what, std::string(filled, '#'), std::string(24 - filled, '.'),
                 share * 100, rest);
    } else {
      fmt::print(stderr, "{}: {:.0f} % of {}{}\n", what, share * 100, human_bytes(total), rest);
    }
    std::fflush(stderr);
  }
};

Progress::Progress(std::string what, uint64_t total_bytes, bool quiet) : state_(std::make_unique<State>()) {
  state_->what = std::move(what);
  state_->total = total_bytes;
  state_->quiet = quiet;
  state_->terminal = isatty(STDERR_FILENO) == 1;
}

Progress::~Progress() {
  if (state_->drawn && state_->terminal) fmt::print(stderr, "\r\x1b[K");
}

void Progress::add(uint64_t bytes) {
  state_->done.fetch_add(bytes, std::memory_order_relaxed);
  if (state_->quiet) return;
  const std::unique_lock lock(state_->mutex, std::try_to_lock);
  if (!lock.owns_lock()) return;
  const auto now = Clock::now();
  if (Seconds(now - state_->last_draw).count() >= (state_->terminal ? kRedrawSeconds : kPlainLineSeconds))
    state_->draw(now);
}

}  // namespace nibble
