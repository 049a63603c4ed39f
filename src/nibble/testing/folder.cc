#include "nibble/testing/folder.h"

namespace nibble::testing {

std::map<std::string, std::string> folder_contents(const Path& folder) {
  std::map<std::string, std::string> contents;
  if (!std::filesystem::exists(folder)) return contents;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file())
      contents[std::filesystem::relative(entry.path(), folder).string()] = read_text(entry.path(), UINT64_MAX);
  }
  return contents;
}

void copy_folder(const Path& from, const Path& to) {
  std::filesystem::copy(from, to, std::filesystem::copy_options::recursive);
}

}  // namespace nibble::testing
