// Any bytes as a GGUF file, once from memory and, if it is accepted, for each way of asking for its values. What is
// accepted must lie in the file.
#include <cstddef>
#include <cstdint>
#include <span>

#include "nibble/base/check.h"
#include "nibble/base/error.h"
#include "nibble/checkpoint/gguf.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  nibble::GgufFile file;
  try {
    file = nibble::parse_gguf(bytes, size, "input");
  } catch (const nibble::Error& error) {
    NIBBLE_CHECK(!error.file().empty() && !error.ways_out().empty());
    return 0;
  }
  for (const auto& tensor : file.tensors) {
    NIBBLE_CHECK(tensor.offset >= file.data_begin && tensor.offset % file.alignment == 0);
    NIBBLE_CHECK(tensor.bytes <= size && tensor.offset <= size - tensor.bytes);
  }
  for (const auto& [key, value] : file.metadata) {
    int refused = 0;
    const auto ask = [&](auto&& get) {
      try {
        NIBBLE_CHECK(get());
      } catch (const nibble::Error&) {
        ++refused;
      }
    };
    ask([&] { return file.get_uint(key).has_value(); });
    ask([&] { return file.get_double(key).has_value(); });
    ask([&] { return file.get_bool(key).has_value(); });
    ask([&] { return file.get_string(key).has_value(); });
    NIBBLE_CHECK(refused >= 3);
  }
  return 0;
}
