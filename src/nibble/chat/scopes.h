// Which variable a name means. Loops, macros and blocks that capture have frames of their own; a name that is assigned
// anywhere in a frame belongs to it, from the start: before its assignment it has the value of the frame outside, or
// that of the template's variables, or none. `if` has no frame. The rules are Jinja's, with their surprises.
#pragma once

#include "nibble/chat/ast.h"

namespace nibble::jinja {

void resolve_names(Template& made);

}  // namespace nibble::jinja
