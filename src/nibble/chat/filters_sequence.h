// Filters on sequences and mappings.
#pragma once

#include "nibble/chat/calls.h"

namespace nibble::jinja {

Value filter_length(Call& call);
Value filter_list(Call& call);
Value filter_first(Call& call);
Value filter_last(Call& call);
Value filter_items(Call& call);
Value filter_reverse(Call& call);
Value filter_map(Call& call);
Value filter_select(Call& call);
Value filter_reject(Call& call);
Value filter_selectattr(Call& call);
Value filter_rejectattr(Call& call);
Value filter_batch(Call& call);
Value filter_slice(Call& call);
Value filter_default(Call& call);
Value filter_attr(Call& call);

}  // namespace nibble::jinja
