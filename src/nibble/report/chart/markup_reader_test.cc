#include <gtest/gtest.h>

#include <stdexcept>

#include "nibble/testing/markup.h"

namespace nibble {
namespace {

TEST(Markup, refuses_what_is_not_well_formed) {
  EXPECT_EQ(testing::parse_markup("<a x=\"1\">b<c/>d</a>").front().text, "bd");
  for (const char* bad : {"<a>", "<a></b>", "<a x=1></a>", "<a x=\"1\" x=\"2\"></a>", "<a>&nbsp;</a>", "<a>1 & 2</a>",
                          "<a id=\"i\"/><a id=\"i\"/>", "</a>", "<a x=\"<\"/>"}) {
    EXPECT_THROW(testing::parse_markup(bad), std::runtime_error) << bad;
  }
}

}  // namespace
}  // namespace nibble
