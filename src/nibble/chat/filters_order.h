// Filters that sort, compare and add up.
#pragma once

#include "nibble/chat/calls.h"

namespace nibble::jinja {

Value filter_sort(Call& call);
Value filter_dictsort(Call& call);
Value filter_unique(Call& call);
Value filter_groupby(Call& call);
Value filter_min(Call& call);
Value filter_max(Call& call);
Value filter_sum(Call& call);

Value filter_abs(Call& call);
Value filter_int(Call& call);
Value filter_float(Call& call);
Value filter_round(Call& call);

}  // namespace nibble::jinja
