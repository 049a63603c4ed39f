// Any bytes as a safetensors header. The first two bytes say how much data follows it in the file. What is accepted
// must tile the data, and a header written from it must be accepted and say the same. The scanner must agree with the
// JSON library on what is JSON: a header that the library refuses is never accepted.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "nibble/base/check.h"
#include "nibble/base/error.h"
#include "nibble/base/json.h"
#include "nibble/checkpoint/safetensors.h"

namespace {

// What the library parses. It also refuses numbers beyond a double, which the scanner passes over if nobody reads them.
bool is_json(std::string_view text) {
  try {
    (void)nibble::Json::parse(text);
    return true;
  } catch (const nibble::Json::out_of_range&) {
    return true;
  } catch (const nibble::Json::parse_error&) {
    return false;
  }
}

void check(const nibble::SafetensorsHeader& header, uint64_t header_bytes, uint64_t buffer_bytes) {
  uint64_t end = header_bytes;
  for (const auto& tensor : header.tensors) {
    NIBBLE_CHECK(tensor.offset == end);
    end += tensor.bytes;
  }
  NIBBLE_CHECK(end + header.trailing_bytes == header_bytes + buffer_bytes);
}

void check_round_trip(const nibble::SafetensorsHeader& header) {
  std::vector<nibble::TensorDecl> decls;
  for (const auto& tensor : header.tensors) decls.push_back({tensor.name, tensor.dtype, tensor.shape});
  const nibble::SafetensorsLayout layout = nibble::plan_safetensors(decls, header.metadata);
  const auto again = nibble::parse_safetensors_header(std::string_view(layout.header).substr(8),
                                                      layout.file_bytes - layout.header.size(), "output");
  NIBBLE_CHECK(again.metadata == header.metadata);
  NIBBLE_CHECK(again.tensors.size() == header.tensors.size());
  for (size_t i = 0; i < again.tensors.size(); ++i) {
    NIBBLE_CHECK(again.tensors[i].name == layout.tensors[i].name);
    NIBBLE_CHECK(again.tensors[i].shape == layout.tensors[i].shape);
    NIBBLE_CHECK(again.tensors[i].offset == layout.offsets[i]);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const uint64_t buffer_bytes = data[0] + uint64_t{256} * (data[1] & 0x7F);
  const bool allow_trailing = (data[1] & 0x80) != 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  nibble::SafetensorsHeader header;
  try {
    header = nibble::parse_safetensors_header(text, buffer_bytes, "input", allow_trailing);
  } catch (const nibble::Error& error) {
    NIBBLE_CHECK(!error.file().empty() && !error.ways_out().empty());
    return 0;
  }
  NIBBLE_CHECK(is_json(text));
  check(header, 8 + text.size(), buffer_bytes);
  check_round_trip(header);
  return 0;
}
