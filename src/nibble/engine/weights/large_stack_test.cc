// Stacks of experts of several gigabytes: their offsets, and what packing them takes. The files are sparse: some
// experts are written, the rest are holes that read as zeros.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "nibble/base/peak_memory.h"
#include "nibble/base/rng.h"
#include "nibble/engine/weights/linear.h"
#include "nibble/testing/temp_dir.h"

namespace nibble {
namespace {

struct StackSizes {
  uint64_t experts, rows, cols;
  uint64_t blocks() const { return cols / 32; }
  uint64_t code_bytes() const { return rows * cols / 2; }   // of one expert
  uint64_t scale_bytes() const { return rows * blocks(); }  // of one expert
};

constexpr StackSizes kLarge{512, 2048, 4096};
constexpr uint64_t kRows = kLarge.rows, kCols = kLarge.cols;
const std::string kModule = "model.layers.0.mlp.experts.gate_up_proj";

// Random codes and scales of one expert as they lie in the file.
struct ExpertBytes {
  std::vector<uint8_t> codes = std::vector<uint8_t>(kLarge.code_bytes()),
                       scales = std::vector<uint8_t>(kLarge.scale_bytes());
  explicit ExpertBytes(uint64_t seed) {
    for (uint64_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint8_t>(random_bits(seed, i));
    for (uint64_t i = 0; i < scales.size(); ++i) scales[i] = static_cast<uint8_t>(120 + random_bits(~seed, i) % 8);
  }
  float value(uint64_t row, uint64_t col) const {
    static constexpr float kMagnitudes[] = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6};
    const uint8_t byte = codes[row * kCols / 2 + col / 2];
    const int code = col % 2 == 0 ? byte & 15 : byte >> 4;
    const float magnitude =
        kMagnitudes[code & 7] * std::exp2(static_cast<float>(scales[row * kLarge.blocks() + col / 32]) - 127);
    return code >= 8 ? -magnitude : magnitude;
  }
};

void write_at(int file, uint64_t at, const std::vector<uint8_t>& bytes) {
  ASSERT_EQ(pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(at)), static_cast<ssize_t>(bytes.size()));
}

// A stack of which the experts named exist.
void write_sparse(const Path& path, const StackSizes& sizes, const std::vector<uint64_t>& experts) {
  const uint64_t codes = sizes.experts * sizes.code_bytes(), scales = sizes.experts * sizes.scale_bytes();
  const Json header = {
      {kModule + "_blocks",
       {{"dtype", "U8"}, {"shape", {sizes.experts, sizes.rows, sizes.blocks(), 16}}, {"data_offsets", {0, codes}}}},
      {kModule + "_scales",
       {{"dtype", "U8"},
        {"shape", {sizes.experts, sizes.rows, sizes.blocks()}},
        {"data_offsets", {codes, codes + scales}}}}};
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::vector<uint8_t> start(8);
  for (uint64_t i = 0; i < 8; ++i) start[i] = static_cast<uint8_t>(text.size() >> (8 * i));
  start.insert(start.end(), text.begin(), text.end());
  const int file = open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  ASSERT_GE(file, 0);
  ASSERT_EQ(ftruncate(file, static_cast<off_t>(start.size() + codes + scales)), 0);
  write_at(file, 0, start);
  for (const uint64_t expert : experts) {
    const ExpertBytes bytes(expert);
    write_at(file, start.size() + expert * sizes.code_bytes(), bytes.codes);
    write_at(file, start.size() + codes + expert * sizes.scale_bytes(), bytes.scales);
  }
  close(file);
}

TEST(LargeStack, C71_experts_at_and_behind_element_2_to_the_31) {
  const testing::TempDir dir;
  write_sparse(dir / "model.safetensors", kLarge, {255, 256, 511});
  const Checkpoint checkpoint = Checkpoint::open(dir / "model.safetensors");
  Findings findings;
  const WeightTable table = WeightTable::build(checkpoint, &findings);
  const int64_t index = table.find(kModule);
  ASSERT_GE(index, 0);
  const Weight& weight = table.weights()[static_cast<size_t>(index)];
  ASSERT_EQ(weight.elements(), uint64_t{1} << 32);
  ThreadPool pool(2);
  Slab slab;
  for (const uint64_t expert :
       {uint64_t{0}, uint64_t{254}, uint64_t{255}, uint64_t{256}, uint64_t{257}, uint64_t{511}}) {
    const ExpertBytes bytes(expert);
    const bool written = expert == 255 || expert == 256 || expert == 511;
    // Gate and up alternate, as gpt-oss stores them.
    for (const uint64_t begin : {uint64_t{0}, uint64_t{1}}) {
      const Linear linear = load_linear(checkpoint, weight, {expert, begin, 2, kRows / 2}, {{}, &pool, &slab});
      std::vector<float> row(kCols);
      for (const uint64_t r : {uint64_t{0}, uint64_t{511}, kRows / 2 - 1}) {
        read_row(linear.matrix, r, row.data());
        for (uint64_t col = 0; col < kCols; ++col) {
          ASSERT_EQ(row[col], written ? bytes.value(begin + 2 * r, col) : 0.0F) << expert << ", " << r << ", " << col;
        }
      }
    }
  }
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
constexpr bool kSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool kSanitized = false;
#endif

// Gate and up of 128 experts, 5888 rows of 1472 bytes: 1.03 GiB of codes. Beside the tiles the peak holds pieces of a
// few megabytes a thread, never a second copy.
TEST(LargeStack, C78_packing_takes_less_than_a_chunk_beside_the_tiles) {
  if (kSanitized) {
    GTEST_SKIP() << "a sanitizer's memory is not the program's";
  }
  const testing::TempDir dir;
  constexpr StackSizes kSizes{128, 5888, 2944};
  ASSERT_EQ(kSizes.experts * kSizes.code_bytes(), 1'109'393'408U);
  write_sparse(dir / "model.safetensors", kSizes, {});
  const Checkpoint checkpoint = Checkpoint::open(dir / "model.safetensors");
  Findings findings;
  const WeightTable table = WeightTable::build(checkpoint, &findings);
  const Weight& weight = table.weights().at(static_cast<size_t>(table.find(kModule)));
  ThreadPool pool(2);
  Slab slab;
  const uint64_t before = peak_memory_bytes();
  uint64_t held = 0;
  std::vector<Linear> experts;
  for (uint64_t expert = 0; expert < kSizes.experts; ++expert) {
    for (const uint64_t begin : {uint64_t{0}, uint64_t{1}}) {
      experts.push_back(load_linear(checkpoint, weight, {expert, begin, 2, kSizes.rows / 2}, {{}, &pool, &slab}));
      held += experts.back().storage.size();
    }
  }
  EXPECT_GE(held, kSizes.experts * (kSizes.code_bytes() + kSizes.scale_bytes()));
  EXPECT_LE(peak_memory_bytes() - before, held + (uint64_t{64} << 20));
}

}  // namespace
}  // namespace nibble
