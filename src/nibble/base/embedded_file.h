// A file of data/ that the program carries inside (cmake/nibble_embed.cmake).
#pragma once

#include <span>
#include <string_view>

namespace nibble {

struct EmbeddedFile {
  std::string_view name;  // without folder and extension
  std::string_view text;
};

}  // namespace nibble
