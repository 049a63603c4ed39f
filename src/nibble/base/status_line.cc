#include "nibble/base/status_line.h"

#include <utility>

#include "nibble/base/error.h"

namespace nibble {
namespace {

constexpr double kPlainLineSeconds = 30;
constexpr double kRedrawSeconds = 0.1;
constexpr const char* kClear = "\r\x1b[K";

}  // namespace

StatusLine::StatusLine(bool quiet, ProgressOutput output)
    : quiet_(quiet), output_(std::move(output)), last_(output_.seconds()) {}

StatusLine::~StatusLine() { clear(); }

void StatusLine::show(std::string_view what) {
  if (quiet_) return;
  const double now = output_.seconds();
  if (now - last_ < (output_.terminal ? kRedrawSeconds : kPlainLineSeconds)) return;
  last_ = now;
  const std::string text = printable(what);
  drawn_ = true;
  put(output_.terminal ? kClear + text : text + "\n");
}

void StatusLine::clear() {
  if (drawn_ && output_.terminal) put(kClear);
  drawn_ = false;
}

void StatusLine::put(const std::string& text) const {
  std::fputs(text.c_str(), output_.file);
  std::fflush(output_.file);
}

}  // namespace nibble
