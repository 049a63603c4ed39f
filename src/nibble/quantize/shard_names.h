// The names of output files: "model.safetensors", or "model-00002-of-00007.safetensors" where there are several.
// Whoever removes files goes by these names, since journals and manifests may be damaged or come from somebody else.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace nibble {

inline constexpr std::string_view kPartialSuffix = ".partial";  // of base/file.h's OutputFile

std::string shard_name(size_t index, size_t count);
// Is it a name that shard_name() gives?
bool is_shard_name(std::string_view name);

}  // namespace nibble
