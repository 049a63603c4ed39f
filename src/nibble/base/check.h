// Broken invariants of our own code. Unlike Error this is a bug: it prints the condition and place and aborts.
#pragma once

namespace nibble::internal {
[[noreturn]] void check_failed(const char* condition, const char* file, int line);
}  // namespace nibble::internal

#define NIBBLE_CHECK(condition)                        \
  (static_cast<bool>(condition) ? static_cast<void>(0) \
                                : ::nibble::internal::check_failed(#condition, __FILE__, __LINE__))
