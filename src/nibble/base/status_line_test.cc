#include "nibble/base/status_line.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace nibble {
namespace {

class StatusLineTest : public ::testing::Test {
 public:
  StatusLineTest() : file_(::open_memstream(&buffer_, &size_)) {}
  ~StatusLineTest() override {
    std::fclose(file_);
    std::free(buffer_);
  }

 protected:
  ProgressOutput output(bool terminal) {
    return {file_, terminal, [this] { return now_; }};
  }
  std::string written() {
    std::fflush(file_);
    return {buffer_, size_};
  }
  double now_ = 5;

 private:
  char* buffer_ = nullptr;
  size_t size_ = 0;
  std::FILE* file_;
};

TEST_F(StatusLineTest, plain_lines_every_thirty_seconds) {
  StatusLine line(false, output(false));
  line.show("layer 1");
  now_ += 29;
  line.show("layer 2");
  EXPECT_EQ(written(), "");
  now_ += 1;
  line.show("layer 3");
  line.show("layer 4");
  EXPECT_EQ(written(), "layer 3\n");
}

TEST_F(StatusLineTest, a_terminals_line_is_written_over_and_cleared) {
  {
    StatusLine line(false, output(true));
    now_ += 1;
    line.show("layer\n1");  // names from files are untrusted
    now_ += 0.06;
    line.show("layer 2");
    now_ += 0.06;
    line.show("layer 3");
  }
  EXPECT_EQ(written(), "\r\x1b[Klayer\\x0a1\r\x1b[Klayer 3\r\x1b[K");
}

TEST_F(StatusLineTest, quiet_is_silent) {
  StatusLine line(true, output(true));
  now_ += 100;
  line.show("layer 1");
  line.clear();
  EXPECT_EQ(written(), "");
}

}  // namespace
}  // namespace nibble
