// `split` and its relatives.
#pragma once

#include "nibble/chat/calls.h"

namespace nibble::jinja {

Value string_split(Call& call);
Value string_rsplit(Call& call);
Value string_splitlines(Call& call);
Value string_partition(Call& call);
Value string_rpartition(Call& call);

}  // namespace nibble::jinja
