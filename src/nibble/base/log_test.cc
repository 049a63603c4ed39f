#include "nibble/base/log.h"

#include <gtest/gtest.h>

#include <functional>

namespace nibble {
namespace {

std::string logged(const std::function<void()>& work) {
  ::testing::internal::CaptureStderr();
  work();
  return ::testing::internal::GetCapturedStderr();
}

TEST(Log, OneLineAMessageOnStandardError) {
  log::set_color(false);
  EXPECT_EQ(logged([] { log::info("reading {} shards"); }), "nibble: info: reading {} shards\n");
  EXPECT_EQ(logged([] { log::warning("two\nlines \x1b[2J"); }), "nibble: warning: two\\x0alines \\x1b[2J\n");
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(logged([] { log::error("x"); }), "nibble: error: x\n");
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
}

TEST(Log, LevelsSilenceWhatIsBelow) {
  log::set_color(false);
  log::set_level(log::Level::kWarning);
  EXPECT_EQ(logged([] { log::info("i"); }), "");
  EXPECT_EQ(logged([] { log::warning("w"); }), "nibble: warning: w\n");
  log::set_level(log::Level::kOff);
  EXPECT_EQ(logged([] { log::error("e"); }), "");
  log::set_level(log::Level::kInfo);
}

}  // namespace
}  // namespace nibble
