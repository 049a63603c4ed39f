// Indices beyond 2^31: matrices and activations whose memory is only reserved, and exists where the test touches it.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "nibble/kernels/kernel.h"
#include "nibble/kernels/matrix_for_test.h"

namespace nibble {
namespace {

constexpr uint64_t kCols = 4096, kBlock = 128;            // rows that are packed and multiplied together
constexpr uint64_t kRows = (uint64_t{1} << 20) + kBlock;  // 2^32 elements and a block
constexpr uint64_t kTokens = 2;
constexpr float kPoison = -12345.5F;

// Zeros that cost nothing until they are written.
class SparseBytes {
 public:
  explicit SparseBytes(uint64_t bytes)
      : bytes_(bytes),
        at_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {}
  ~SparseBytes() {
    if (there()) munmap(at_, bytes_);
  }
  SparseBytes(const SparseBytes&) = delete;
  SparseBytes& operator=(const SparseBytes&) = delete;
  bool there() const { return at_ != MAP_FAILED; }
  template <typename T>
  T* as() const {
    return static_cast<T*>(at_);
  }

 private:
  uint64_t bytes_;
  void* at_;
};

// Activations of the tokens.
struct TokensForTest {
  std::vector<float> x = std::vector<float>(kTokens * kCols);
  ActivationsForTest activations;

  explicit TokensForTest(RngForTest* rng) {
    for (float& value : x) value = rng->normal();
  }
  PanelTask task(const Kernel& kernel, const WeightLayout& layout) {
    PanelTask task;
    task.tokens = kTokens;
    activations.prepare(kernel.activations, layout, x.data(), kTokens, kCols, &task);
    return task;
  }
};

bool takes(const Kernel& kernel, const WeightLayout& layout) {
  return kernel.processor_lacks().empty() && kernel.panel(layout) != nullptr;
}

// A block of rows of the large matrix gives what it gives as a matrix of its own, and nothing beside it is written.
void expect_block(const std::string& format_name, const SparseBytes& memory, const WeightLayout& layout, uint64_t row,
                  RngForTest* rng) {
  const PackedForTest alone(format_name, kBlock, kCols, rng);
  pack_rows(layout, alone.encoded.view(), row, memory.as<std::byte>());
  const ResidentMatrix large{layout, memory.as<std::byte>(), alone.matrix.multiplier};
  TokensForTest activations(rng);
  const SparseBytes out(kTokens * kRows * sizeof(float));
  ASSERT_TRUE(out.there());
  auto* got = out.as<float>();
  for (const Kernel* kernel : kernels()) {
    if (!takes(*kernel, layout)) continue;
    SCOPED_TRACE(std::string(kernel->name) + ", " + format_name + ", row " + std::to_string(row));
    PanelTask task = activations.task(*kernel, layout);
    std::vector<float> wanted(kTokens * kBlock);
    task.weights = &alone.matrix;
    task.group_end = kBlock / kRowGroup;
    task.out = wanted.data();
    task.out_stride = kBlock;
    kernel->panel(alone.layout)(task);
    task.weights = &large;
    task.group_begin = row / kRowGroup;
    task.group_end = (row + kBlock) / kRowGroup;
    task.out = got;
    task.out_stride = kRows;
    for (uint64_t t = 0; t < kTokens; ++t) std::fill_n(got + t * kRows + row, kBlock, kPoison);
    kernel->panel(layout)(task);
    for (uint64_t t = 0; t < kTokens; ++t) {
      const float* of_token = got + t * kRows;
      ASSERT_TRUE(same_bits_for_test(of_token + row, wanted.data() + t * kBlock, kBlock)) << t;
      ASSERT_TRUE(row == 0 || of_token[row - 1] == 0);
      ASSERT_TRUE(row + kBlock == kRows || of_token[row + kBlock] == 0);
    }
  }
}

// Rows at element 0, at element 2^31, before element 2^32 and behind it. Bytes pass 2^31 and 2^32 too.
TEST(Offsets, C71_matrices_of_more_than_2_to_the_32_elements) {
  RngForTest rng{71};
  for (const std::string& name : layout_formats_for_test()) {
    const LayoutChoice choice = choose_layout(parse_format(name), kRows, kCols);
    if (!choice.layout || choice.layout->codes == CodeKind::kF32) continue;
    const SparseBytes memory(choice.layout->bytes());
    ASSERT_TRUE(memory.there());
    for (const uint64_t row : {uint64_t{0}, uint64_t{1} << 19, (uint64_t{1} << 20) - kBlock, uint64_t{1} << 20}) {
      expect_block(name, memory, *choice.layout, row, &rng);
    }
  }
}

// One token whose row of activations begins beyond element 2^31.
TEST(Offsets, C71_activations_of_more_than_2_to_the_31_elements) {
  constexpr uint32_t kFar = 600'000;
  RngForTest rng{72};
  for (const std::string name : {"mxfp4", "int4-g32", "bf16"}) {
    const PackedForTest packed(name, 32, kCols, &rng);
    TokensForTest activations(&rng);
    for (const Kernel* kernel : kernels()) {
      if (!takes(*kernel, packed.layout) || kernel->activations == ActivationKind::kE2M1) continue;
      SCOPED_TRACE(std::string(kernel->name) + ", " + name);
      PanelTask task = activations.task(*kernel, packed.layout);
      std::vector<float> wanted(32, kPoison), got(32, kPoison);
      task.weights = &packed.matrix;
      task.group_end = packed.layout.row_groups();
      task.tokens = 1;
      task.out = wanted.data();
      task.out_stride = 32;
      kernel->panel(packed.layout)(task);
      const uint64_t groups = task.int8.groups;
      const SparseBytes values((kFar + 1) * kCols * sizeof(float)), codes((kFar + 1) * kCols),
          scales((kFar + 1) * groups * sizeof(float) + 64), corrections((kFar + 1) * groups * sizeof(int32_t) + 64);
      ASSERT_TRUE(values.there() && codes.there() && scales.there() && corrections.there());
      if (kernel->activations == ActivationKind::kF32) {
        std::memcpy(values.as<float>() + kFar * kCols, task.f32.values, kCols * sizeof(float));
        task.f32.values = values.as<float>();
      } else if (kernel->activations == ActivationKind::kBF16) {
        std::memcpy(values.as<uint16_t>() + kFar * kCols, task.bf16.values, kCols * sizeof(uint16_t));
        task.bf16.values = values.as<uint16_t>();
      } else {
        std::memcpy(codes.as<int8_t>() + kFar * kCols, task.int8.codes, kCols);
        std::memcpy(scales.as<float>() + kFar * groups, task.int8.scales, groups * sizeof(float));
        std::memcpy(corrections.as<int32_t>() + kFar * groups, task.int8.corrections, groups * sizeof(int32_t));
        task.int8.codes = codes.as<int8_t>();
        task.int8.scales = scales.as<float>();
        task.int8.corrections = corrections.as<int32_t>();
      }
      task.rows = &kFar;
      task.out = got.data();
      kernel->panel(packed.layout)(task);
      EXPECT_TRUE(same_bits_for_test(got.data(), wanted.data(), 32));
    }
  }
}

}  // namespace
}  // namespace nibble
