// What a long run of unlike steps is at, on standard error: one line that is written over on a terminal, a plain line
// every 30 s otherwise, nothing when quiet. For bytes that are counted progress.h is better: it foretells the end.
#pragma once

#include <string>
#include <string_view>

#include "nibble/base/progress.h"

namespace nibble {

class StatusLine {
 public:
  explicit StatusLine(bool quiet, ProgressOutput output = standard_progress_output());
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;
  // From one thread. Texts that follow each other within a tenth of a second may be left out.
  void show(std::string_view what);
  void clear();

 private:
  void put(const std::string& text) const;

  bool quiet_;
  ProgressOutput output_;
  double last_ = 0;
  bool drawn_ = false;
};

}  // namespace nibble
