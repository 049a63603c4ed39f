// Tables for the terminal.
#pragma once

#include <string>
#include <vector>

namespace nibble {

// Aligned columns: the first row is the header; columns whose cells all look like numbers are right-aligned.
std::string table_text(const std::vector<std::vector<std::string>>& rows);

}  // namespace nibble
