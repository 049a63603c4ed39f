// The `tojson` filter: Python's json.dumps with ensure_ascii, indent, separators and sort_keys.
#pragma once

#include "nibble/chat/calls.h"

namespace nibble::jinja {

Value filter_tojson(Call& call);

}  // namespace nibble::jinja
