#include "nibble/verify/weight_stats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "nibble/base/hash.h"
#include "nibble/base/syscalls.h"
#include "nibble/models/model.h"
#include "nibble/numerics/decode.h"
#include "nibble/verify/code_stats.h"
#include "nibble/verify/verify_for_test.h"

namespace nibble {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): helpers of tests, no header

struct Scanned {
  Scanned(const TinyCheckpoint& tiny, const ScanOptions& scan_options) {
    tiny.write(dir / "m");
    Findings findings;
    checkpoint.emplace(Checkpoint::scan(dir / "m", {}, &findings));
    model = load_model(*checkpoint, &findings);
    ScanOptions options = scan_options;
    options.quiet = true;
    result = scan_weights(*checkpoint, model.table, options);
  }
  const WeightStats& of(std::string_view name) const {
    return result.weights[static_cast<size_t>(model.table.find(name))];
  }
  TempDir dir;
  std::optional<Checkpoint> checkpoint;
  Model model;
  ScanResult result;
};

ScanOptions with_threads(int threads) {
  ScanOptions options;
  options.threads = threads;
  return options;
}

// Statistics of a weight from its canonical arrays, code by code.
void expect_exact(const Scanned& scanned, size_t w) {
  const Weight& weight = scanned.model.table.weights()[w];
  const WeightStats& stats = scanned.result.weights[w];
  std::vector<uint64_t> histogram(uint64_t{1} << element_bits(weight.format.element));
  uint64_t scales = 0;
  double largest_scale = 0;
  for (uint64_t slice = 0; slice < weight.slices(); ++slice) {
    const EncodedMatrix m = weight.convention->read(*scanned.checkpoint, weight, slice, 0, weight.rows());
    const uint64_t row_bytes = weight.format.code_row_bytes(m.cols);
    for (uint64_t i = 0; i < m.rows * m.cols; ++i) {
      const uint64_t row = i / m.cols;
      const uint64_t col = i % m.cols;
      if (histogram.size() == 256) {
        ++histogram[static_cast<uint8_t>(m.codes[row * row_bytes + col])];
      } else {
        const auto byte = static_cast<uint8_t>(m.codes[row * row_bytes + col / 2]);
        ++histogram[col % 2 == 0 ? byte & 15u : byte >> 4];
      }
    }
    for (uint64_t s = 0; s < m.scales.size() / weight.format.scale_bytes(); ++s, ++scales)
      largest_scale =
          std::max(largest_scale,
                   static_cast<double>(scale_value(weight.format.scale, &m.scales[s * weight.format.scale_bytes()])));
  }
  EXPECT_EQ(stats.elements, weight.elements()) << weight.name;
  EXPECT_EQ(stats.code_histogram, histogram) << weight.name;
  EXPECT_EQ(stats.scales.count, scales) << weight.name;
  EXPECT_EQ(stats.scales.max, largest_scale) << weight.name;
  EXPECT_EQ(stats.blocks, scales) << weight.name;
}

TEST(WeightStats, CountsWhatTheConventionDelivers) {
  for (const char* format : {"int4-g32", "int4-g32-asym", "int4-channel", "mxfp4", "nvfp4", "mxfp8", "fp8-block",
                             "fp8-channel", "fp8-tensor"}) {
    TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
    tiny.quantize("compressed-tensors", format);
    const Scanned scanned(tiny, with_threads(2));
    ASSERT_TRUE(scanned.result.findings.empty());
    size_t checked = 0;
    for (size_t w = 0; w < scanned.model.table.weights().size(); ++w) {
      if (scanned.model.table.weights()[w].format.is_dense()) continue;
      expect_exact(scanned, w);
      ++checked;
    }
    EXPECT_EQ(checked, 24u) << format;
  }
}

TEST(WeightStats, DenseWeightsAndStacks) {
  TinyCheckpoint tiny = TinyCheckpoint::gpt_oss();
  const std::vector<float> values = tiny.values("lm_head.weight");
  double squares = 0;
  for (const float x : values) squares += static_cast<double>(x) * static_cast<double>(x);
  const Scanned dense(tiny, with_threads(2));
  EXPECT_NEAR(dense.of("lm_head.weight").sum_squares, squares, 1e-9 * squares);
  EXPECT_NEAR(dense.of("lm_head.weight").dense_rms(), 0.05, 0.002);
  tiny.quantize("gpt-oss", "mxfp4", "*.mlp.experts.*_proj");
  const Scanned packed(tiny, with_threads(2));
  for (size_t w = 0; w < packed.model.table.weights().size(); ++w) {
    if (!packed.model.table.weights()[w].format.is_dense()) expect_exact(packed, w);
  }
}

void expect_same(const WeightStats& a, const WeightStats& b) {
  EXPECT_EQ(a.code_histogram, b.code_histogram);
  EXPECT_EQ(a.block_max_histogram, b.block_max_histogram);
  EXPECT_EQ(a.scales.log2_fixed, b.scales.log2_fixed);
  EXPECT_EQ(a.second, b.second);
  EXPECT_EQ(a.level, b.level);
  EXPECT_EQ(a.sum_squares, b.sum_squares);  // bit for bit
}

TEST(WeightStats, DoNotDependOnThreads) {
  TinyOptions options;
  options.vocabulary = 40'000;  // 5 MB: two pieces
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe(options);
  tiny.quantize("compressed-tensors", "nvfp4");
  const Scanned one(tiny, with_threads(1));
  const Scanned many(tiny, with_threads(7));
  for (size_t w = 0; w < one.result.weights.size(); ++w) expect_same(one.result.weights[w], many.result.weights[w]);
}

TEST(WeightStats, QuickReadsAllScalesOnce) {
  TinyOptions options;
  options.hidden = 512;  // 512 rows of 512: more than the sample
  options.intermediate = 512;
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe(options);
  tiny.quantize("compressed-tensors", "nvfp4");
  ScanOptions quick;
  quick.quick = true;
  const Scanned sampled(tiny, quick);
  const Scanned all(tiny, {});
  const std::string name = "model.layers.0.mlp.experts.1.up_proj.weight";
  EXPECT_TRUE(sampled.of(name).sampled);
  EXPECT_FALSE(all.of(name).sampled);
  EXPECT_EQ(sampled.of(name).scales.count, all.of(name).scales.count);
  EXPECT_EQ(sampled.of(name).scales.log2_fixed, all.of(name).scales.log2_fixed);
  EXPECT_EQ(sampled.of(name).second, all.of(name).second);
  EXPECT_EQ(sampled.of(name).level, SecondLevel::kDivide);
  EXPECT_EQ(sampled.of(name).elements, 2 * uint64_t{65536});
  EXPECT_LT(sampled.result.bytes, all.result.bytes);
}

TEST(WeightStats, HashesWholeFiles) {
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
  ScanOptions options;
  options.hash_files = {true};
  const Scanned scanned(tiny, options);
  ASSERT_EQ(scanned.result.sha256.size(), 1u);
  const std::string content = read_text(scanned.dir / "m" / "model.safetensors", 1 << 30);
  EXPECT_EQ(scanned.result.sha256[0], sha256_hex(std::as_bytes(std::span(content))));
}

ssize_t failing_pread(int fd, void* buffer, size_t count, off_t offset) {
  if (offset > 100'000 && offset < 150'000) {
    errno = EIO;
    return -1;
  }
  return real_syscalls().pread(fd, buffer, count, offset);
}

TEST(WeightStats, C125_a_read_error_is_a_finding_with_file_and_offset) {
  const TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
  const TempDir dir;
  tiny.write(dir / "m");
  syscalls().pread = failing_pread;
  const VerifyReport report = verify_quietly(dir / "m");
  syscalls() = real_syscalls();
  const Findings found = of_rule(report, "unreadable");
  ASSERT_FALSE(found.empty()) << text_of(report.findings);
  EXPECT_TRUE(found[0].file.ends_with("model.safetensors"));
  EXPECT_NE(text_of(found[0]).find("offset"), std::string::npos) << text_of(found[0]);
  EXPECT_FALSE(report.ok);
}

}  // namespace
}  // namespace nibble
