// The certificate in the candidate's own nibble.json, under "certificate": what was proved of these weights goes where
// they go.
#pragma once

#include <string>

#include "nibble/base/json.h"

namespace nibble {

// Puts `summary` in place of an earlier one. False if `candidate` is no folder with a nibble.json. Error if the file is
// no JSON object or cannot be written; then it is as it was.
bool record_certificate(const std::string& candidate, const Json& summary);

}  // namespace nibble
