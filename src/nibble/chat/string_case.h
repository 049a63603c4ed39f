// Methods of strings that ask for or change the class, the case or the width of their characters.
#pragma once

#include "nibble/chat/calls.h"

namespace nibble::jinja {

Value string_upper(Call& call);
Value string_lower(Call& call);
Value string_title(Call& call);
Value string_capitalize(Call& call);
Value string_casefold(Call& call);
Value string_swapcase(Call& call);

Value string_center(Call& call);
Value string_ljust(Call& call);
Value string_rjust(Call& call);
Value string_zfill(Call& call);
Value string_expandtabs(Call& call);

Value string_isalnum(Call& call);
Value string_isalpha(Call& call);
Value string_isascii(Call& call);
Value string_isdecimal(Call& call);
Value string_isdigit(Call& call);
Value string_isnumeric(Call& call);
Value string_isspace(Call& call);
Value string_isprintable(Call& call);
Value string_isidentifier(Call& call);
Value string_islower(Call& call);
Value string_isupper(Call& call);
Value string_istitle(Call& call);

// The `title` filter, which finds words in another way than the method.
TextPtr title_words(Run& run, const TextPtr& text);
TextPtr center_text(Run& run, const TextPtr& text, int64_t width, const Text& fill);

}  // namespace nibble::jinja
