// What a template sees of the conversation.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "nibble/chat/interpreter.h"

namespace nibble::jinja {

// The members of `variables` by name. `trusted`: those whose text is as the template's, or parts of them, as
// "messages[].role".
void set_variables(Interpreter& interpreter, const nlohmann::ordered_json& variables,
                   const std::vector<std::string>& trusted);

}  // namespace nibble::jinja
