// Progress of long work on standard error: a bar on a terminal, a plain line every 30 s otherwise, nothing when quiet.
// The remaining time comes from the rate of the last 30 s, and is not shown before 2 s have passed: no guess is better
// than a wrong one. add() may be called from any thread; an output that cannot be written is no reason to stop the
// work.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>

namespace nibble {

// Where progress goes and what time it is. Tests bring their own.
struct ProgressOutput {
  std::FILE* file = stderr;
  bool terminal = false;
  std::function<double()> seconds;  // never goes back
};

ProgressOutput standard_progress_output();  // standard error, by the steady clock

class Progress {
 public:
  Progress(const std::string& what, uint64_t total_bytes, bool quiet);
  Progress(const std::string& what, uint64_t total_bytes, bool quiet, ProgressOutput output);
  ~Progress();  // clears the bar
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void add(uint64_t bytes);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace nibble
