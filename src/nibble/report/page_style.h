// The look of a report's page: light and dark, from a telephone to paper.
#pragma once

#include <string_view>

namespace nibble {

// The content of <style>.
std::string_view page_style();

}  // namespace nibble
