// The formats in which the field publishes large models, 16 bits first: what a comparison shows if nobody asks for
// others.
#pragma once

#include <span>
#include <string_view>

namespace nibble {

std::span<const std::string_view> published_formats();

// The scheme that the first releases with quantization-aware training were trained for: published experiments about it
// use this grid.
struct PublishedScheme {
  std::string_view format, rule;
};
PublishedScheme published_training_scheme();

}  // namespace nibble
