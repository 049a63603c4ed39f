// JSON from untrusted sources: nlohmann's types behind one strict entrance.
//
// parse_json refuses, naming the source and the byte offset (from 0), key or number: broken UTF-8, trailing text,
// nesting above 64, a key that an object holds twice, and numbers that do not fit a double. NaN, Infinity and -Infinity
// are read as Python reads them, kept, and written again; typed access refuses them. Key order is kept (a config
// is written back as it was read), so an object is a list: looking a key up is linear in its members. Walk over big
// ones.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "nibble/base/file.h"

namespace nibble {

using Json = nlohmann::ordered_json;

inline constexpr int kMaxJsonDepth = 64;

Json parse_json(std::string_view text, const std::string& source_name);
// read_text + parse_json.
Json read_json(const Path& path, uint64_t limit = uint64_t{256} << 20);
// Two-space indentation, newline at the end, UTF-8 as it is.
std::string json_text(const Json& value);
// The same with null for what is no number, which every reader of JSON takes.
std::string strict_json_text(const Json& value);

// The member `key`; null if it is absent or null, or `object` is none.
const Json* json_member(const Json& object, const std::string& key);

// Typed access: the member `key` of `object`, nullopt if it is absent or null, Error (naming `source_name`, the key and
// what stood there) if it has another type. uint64 refuses negative and fractional numbers; a float that is a whole
// number passes. double refuses NaN and the infinities.
std::optional<uint64_t> json_uint(const Json& object, const std::string& key, const std::string& source_name);
std::optional<double> json_double(const Json& object, const std::string& key, const std::string& source_name);
std::optional<bool> json_bool(const Json& object, const std::string& key, const std::string& source_name);
std::optional<std::string> json_string(const Json& object, const std::string& key, const std::string& source_name);

}  // namespace nibble
