#include "nibble/models/bundled_models.h"

#include <algorithm>
#include <cctype>

namespace nibble {
namespace {

bool same_letters(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

}  // namespace

const EmbeddedFile* find_bundled_model(std::string_view name) {
  for (const EmbeddedFile& file : bundled_models()) {
    if (same_letters(file.name, name)) return &file;
  }
  return nullptr;
}

}  // namespace nibble
