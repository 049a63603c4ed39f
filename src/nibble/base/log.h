// What the program says beside its result: standard error, one line a message (control characters in it are escaped),
// nothing on standard output ever. Any thread may call.
#pragma once

#include <string>

namespace nibble::log {

enum class Level { kInfo, kWarning, kError, kOff };

void set_level(Level level);
void set_color(bool on);
void info(const std::string& message);
void warning(const std::string& message);
void error(const std::string& message);

}  // namespace nibble::log
