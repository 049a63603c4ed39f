// The sub-folders of a checkpoint: those that are companions of the weights (figures, chat templates, code), and those
// that hold another model or more than a companion would (an `original` of the weights, a data set).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "nibble/base/file.h"

namespace nibble {

struct SubFolders {
  std::vector<Path> files;                                // relative to the folder, sorted
  std::vector<std::pair<std::string, std::string>> left;  // name of a sub-folder that is none, and why; sorted
};

// Hidden folders and files are passed over, links to folders not followed.
SubFolders sort_sub_folders(const Path& folder);

}  // namespace nibble
