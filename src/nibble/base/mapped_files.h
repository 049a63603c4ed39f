// Which memory ranges map which files, readable from a signal handler: InputFile registers, the SIGBUS handler looks
// up.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace nibble {

void register_mapping(std::span<const std::byte> range, const std::string& path);
void unregister_mapping(std::span<const std::byte> range);

}  // namespace nibble
