// What the operating system refused, as an Error: the reason in its words, the path, and a way out that goes with it.
#pragma once

#include <string>

#include "nibble/base/error.h"
#include "nibble/base/file.h"

namespace nibble {

// `code` is an errno: "cannot open: Permission denied (file …); try: check the permissions".
Error system_error(const std::string& doing, const Path& path, int code);

}  // namespace nibble
