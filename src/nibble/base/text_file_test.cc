#include "nibble/base/text_file.h"

#include <gtest/gtest.h>

#include <vector>

#include "nibble/testing/temp_dir.h"

namespace nibble {
namespace {

std::vector<std::string> lines_of(const Path& path) {
  std::vector<std::string> lines;
  for_lines(path, [&lines](std::string_view line) { lines.emplace_back(line); });
  return lines;
}

TEST(TextFile, LongTextAndItsHead) {
  const testing::TempDir dir;
  const Path path = dir.path() / "rows";
  TextFile file(path);
  std::string expected = "0000\n";
  file.add(expected);
  std::vector<std::string> lines{"4711"};
  for (int i = 0; i < 3000; ++i) {  // several pieces, cut inside lines
    lines.emplace_back(1000 + static_cast<size_t>(i) % 7, static_cast<char>('a' + i % 26));
    file.add(lines.back());
    file.add("\n");
    expected += lines.back() + "\n";
  }
  file.replace_head("4711");
  EXPECT_FALSE(std::filesystem::exists(path));
  file.commit();
  expected.replace(0, 4, "4711");
  EXPECT_EQ(read_text(path, expected.size()), expected);
  EXPECT_EQ(lines_of(path), lines);
}

TEST(TextFile, LinesWithoutAnEnd) {
  const testing::TempDir dir;
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases{
      {"", {}},
      {"\n", {""}},
      {"a", {"a"}},
      {"a\n", {"a"}},
      {"a\n\nb", {"a", "", "b"}},
      {std::string(3 << 20, 'x'), {std::string(3 << 20, 'x')}}};
  for (const auto& [text, lines] : cases) {
    write_atomically(dir.path() / "text", text);
    EXPECT_EQ(lines_of(dir.path() / "text"), lines);
  }
}

}  // namespace
}  // namespace nibble
