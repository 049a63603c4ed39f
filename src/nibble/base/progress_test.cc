#include "nibble/base/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

#include "nibble/base/parallel.h"

namespace nibble {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A clock that the test moves and a file in memory.
class ProgressTest : public ::testing::Test {
 public:
  ProgressTest() : file_(::open_memstream(&buffer_, &size_)) {}
  ~ProgressTest() override {
    std::fclose(file_);
    std::free(buffer_);
  }

 protected:
  Progress make(uint64_t total, bool terminal, bool quiet = false) {
    return Progress("reading", total, quiet, {file_, terminal, [this] { return now_; }});
  }
  // What was written since the last call.
  std::string written() {
    std::fflush(file_);
    const std::string all(buffer_, size_);
    const std::string fresh = all.substr(taken_);
    taken_ = all.size();
    return fresh;
  }
  double now_ = 1000;

 private:
  char* buffer_ = nullptr;
  size_t size_ = 0, taken_ = 0;
  std::FILE* file_;
};

TEST_F(ProgressTest, PlainLinesEveryThirtySeconds) {
  Progress progress = make(1'000'000'000, false);
  now_ += 29;
  progress.add(100'000'000);
  EXPECT_THAT(written(), IsEmpty());
  now_ += 1;
  progress.add(200'000'000);
  EXPECT_EQ(written(), "reading: 30 % of 1.00 GB, 10.0 MB/s, 70 s left\n");
  now_ += 10;
  progress.add(1);
  EXPECT_THAT(written(), IsEmpty());
}

TEST_F(ProgressTest, BarOnATerminalIsClearedAtTheEnd) {
  {
    Progress progress = make(1000, true);
    progress.add(1);
    EXPECT_THAT(written(), IsEmpty());  // not before a tenth of a second
    now_ += 0.1;
    progress.add(499);
    EXPECT_EQ(written(), "\r\x1b[Kreading [############............] 50 %");
  }
  EXPECT_EQ(written(), "\r\x1b[K");
}

TEST_F(ProgressTest, NoGuessInTheFirstTwoSeconds) {
  Progress progress = make(1000, true);
  now_ += 1.9;
  progress.add(100);
  EXPECT_THAT(written(), Not(HasSubstr("left")));
  now_ += 0.1;
  progress.add(100);
  EXPECT_THAT(written(), EndsWith("20 %, 100 B/s, 8 s left"));
}

TEST_F(ProgressTest, RateIsThatOfTheLastThirtySeconds) {
  Progress progress = make(100'000, true);
  for (int i = 0; i < 100; ++i) {  // 100 seconds at 100 B/s
    now_ += 1;
    progress.add(100);
  }
  written();
  for (int i = 0; i < 40; ++i) {  // 40 seconds at 10 B/s
    now_ += 1;
    progress.add(10);
  }
  EXPECT_THAT(written(), HasSubstr("10 B/s, 8960 s left"));
}

TEST_F(ProgressTest, StandingStillPromisesNothing) {
  Progress progress = make(1000, true);
  now_ += 5;
  progress.add(0);
  EXPECT_THAT(written(), EndsWith(" 0 %"));
}

TEST_F(ProgressTest, MoreThanTheTotalStaysAtHundred) {
  Progress progress = make(100, true);
  now_ += 5;
  progress.add(250);
  EXPECT_THAT(written(), EndsWith("[########################] 100 %"));
}

TEST_F(ProgressTest, NothingToDoIsDone) {
  Progress progress = make(0, true);
  now_ += 5;
  progress.add(0);
  EXPECT_THAT(written(), EndsWith("100 %"));
}

TEST_F(ProgressTest, QuietSaysNothing) {
  {
    Progress progress = make(100, true, true);
    now_ += 100;
    progress.add(50);
  }
  EXPECT_THAT(written(), IsEmpty());
}

TEST_F(ProgressTest, AnyThreadMayAdd) {
  {
    Progress progress = make(10'000, true);
    now_ += 1;
    parallel_for(1'000, 4, [&](uint64_t) { progress.add(10); });
    now_ += 10;
    progress.add(0);
  }
  EXPECT_THAT(written(), HasSubstr("100 %"));
}

TEST(Progress, OutputThatCannotBeWrittenIsNoError) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> full(std::fopen("/dev/full", "w"), std::fclose);
  ASSERT_TRUE(full);
  double now = 0;
  {
    Progress progress("x", 10, false, {full.get(), true, [&now] { return now; }});
    now = 5;
    progress.add(5);
  }
}

TEST(Progress, StandardErrorByDefault) {
  ::testing::internal::CaptureStderr();
  {
    Progress("x", 10, false).add(5);
  }  // too early for anything
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace nibble
