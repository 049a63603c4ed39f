// Filters on strings.
#pragma once

#include "nibble/chat/calls.h"

namespace nibble::jinja {

Value filter_upper(Call& call);
Value filter_lower(Call& call);
Value filter_title(Call& call);
Value filter_capitalize(Call& call);
Value filter_trim(Call& call);
Value filter_replace(Call& call);
Value filter_center(Call& call);
Value filter_indent(Call& call);
Value filter_truncate(Call& call);
Value filter_wordcount(Call& call);
Value filter_string(Call& call);
Value filter_escape(Call& call);
Value filter_forceescape(Call& call);
Value filter_safe(Call& call);
Value filter_format(Call& call);
Value filter_urlencode(Call& call);
Value filter_join(Call& call);

}  // namespace nibble::jinja
