// Folders as values, for tests that compare whole outputs.
#pragma once

#include <map>
#include <string>

#include "nibble/base/file.h"

namespace nibble::testing {

// Every file below `folder` (recursively) by relative path, with its content. Empty if the folder does not exist.
std::map<std::string, std::string> folder_contents(const Path& folder);

// Copies a folder of files.
void copy_folder(const Path& from, const Path& to);

}  // namespace nibble::testing
