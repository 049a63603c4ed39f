// A request of plugin.h to its answer, both as text. Throws nothing but std::bad_alloc: errors are answers.
#pragma once

#include <string>
#include <string_view>

#include "nibble/train/kind.h"

namespace nibble {

std::string answer_request(std::string_view request, const TrainHost& host);

}  // namespace nibble
