// GPT-2's way of writing bytes as printable characters, in which vocabularies and merges of byte-level BPE are
// published: printable Latin-1 stands for itself, the other 68 bytes for U+0100 and on, in their order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace nibble {

// The bytes that `symbols` (UTF-8) stands for; nullopt if a character of it stands for none, as in names of added
// tokens.
std::optional<std::string> bytes_of_symbols(std::string_view symbols);
// The other way round.
std::string symbols_of_bytes(std::string_view bytes);

}  // namespace nibble
