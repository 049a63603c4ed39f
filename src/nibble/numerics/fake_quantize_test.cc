#include "nibble/numerics/fake_quantize.h"

#include <gtest/gtest.h>

#include <limits>

#include "nibble/numerics/quantize_for_test.h"

namespace nibble {
namespace {

// One format of each family that can be written, and what else a rule is for.
std::vector<Format> formats() {
  std::vector<Format> list = example_writable_formats();
  for (const char* name : {"int4-g16", "int4-channel", "int8-g32", "int8-channel", "fp8-block1x128"})
    list.push_back(parse_format(name));
  return list;
}

std::vector<std::string> rules_for(const Format& format) {
  if (format.is_dense()) return {""};
  std::vector<std::string> names;
  for (const ScaleRule* rule : scale_rules()) {
    if (!rule->applies(format)) continue;
    names.emplace_back(rule->name);
    names.push_back("mse." + names.back());
  }
  return names;
}

QuantizeOptions options_of(const Format& format, const std::string& rule) {
  return {.format = format, .rule = rule.empty() ? NamedRule{} : parse_rule(rule, format)};
}

std::vector<float> fake(const FakeQuantizer& quantizer, const DenseView& rows) {
  std::vector<float> out(rows.rows * rows.cols, std::numeric_limits<float>::quiet_NaN());
  const auto scale = quantizer.tensor_scale({&rows, 1});
  EXPECT_TRUE(scale.has_value());
  EXPECT_FALSE(quantizer.run(rows, *scale, out.data(), rows.cols).has_value());
  return out;
}

// Bits, so that 0 and -0 differ.
void expect_bits(const std::vector<float>& got, const std::vector<float>& wanted, const std::string& what) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) ASSERT_EQ(float_bits(got[i]), float_bits(wanted[i])) << what << " at " << i;
}

TEST(FakeQuantize, EqualsDecodingWhatWasPacked) {
  // 256 columns: 64 rows a chunk, so that the chunks' last one is a partial one, and so is the last tile of rows.
  for (const Element element : {Element::kF32, Element::kBF16}) {
    const DenseMatrix rows = random_matrix(3, 261, 256, element);
    for (const Format& format : formats()) {
      for (const std::string& rule : rules_for(format)) {
        const QuantizeOptions options = options_of(format, rule);
        expect_bits(fake(FakeQuantizer(options), rows.view()), quantize(rows.view(), options).values(),
                    format.name + " " + rule);
      }
    }
  }
}

TEST(FakeQuantize, TheInputMayBeTheOutput) {
  for (const Format& format : formats()) {
    const QuantizeOptions options = options_of(format, format.is_dense() ? "" : default_rule(format).name());
    DenseMatrix rows = random_matrix(4, 150, 256, Element::kF32);
    const FakeQuantizer quantizer(options);
    const std::vector<float> wanted = fake(quantizer, rows.view());
    const DenseView view = rows.view();
    auto* values = reinterpret_cast<float*>(rows.bytes.data());
    ASSERT_FALSE(quantizer.run(view, *quantizer.tensor_scale({&view, 1}), values, 256).has_value());
    expect_bits({values, values + rows.rows * rows.cols}, wanted, format.name);
  }
}

TEST(FakeQuantize, RowsMayBeCut) {
  const DenseMatrix rows = random_matrix(5, 300, 128, Element::kF32);
  for (const Format& format : formats()) {
    const QuantizeOptions options = options_of(format, format.is_dense() ? "" : default_rule(format).name());
    const FakeQuantizer quantizer(options);
    if (format.block_rows == 0 && !quantizer.quantizer().needs_amax()) continue;  // scales of columns: not cut
    const DenseView all = rows.view();
    const TensorScale scale = *quantizer.tensor_scale({&all, 1});
    const uint64_t first = quantizer.cut_rows() * 2;
    ASSERT_LT(first, all.rows);
    std::vector<float> out(300 * 128);
    const DenseView top{all.data, all.element, first, all.cols, all.row_stride};
    const DenseView rest{all.data + first * all.row_stride, all.element, all.rows - first, all.cols, all.row_stride};
    ASSERT_FALSE(quantizer.run(top, scale, out.data(), 128).has_value());
    ASSERT_FALSE(quantizer.run(rest, scale, out.data() + first * 128, 128).has_value());
    expect_bits(out, fake(quantizer, all), format.name);
  }
}

// The larger of two matrices sets the scale of both: amax / (6 * 448).
TEST(FakeQuantize, MatricesShareASecondLevel) {
  const DenseMatrix small = dense_matrix(std::vector<float>(32, 0.5f), 2, 16, Element::kF32);
  const DenseMatrix large = dense_matrix(std::vector<float>(16, 2.0f), 1, 16, Element::kF32);
  const FakeQuantizer quantizer(options_of(parse_format("nvfp4"), "nv.two_level"));
  const DenseView both[] = {small.view(), large.view()};
  EXPECT_EQ(quantizer.tensor_scale(both)->value, 2.0f / 2688.0f);
  EXPECT_EQ(quantizer.tensor_scale({both, 1})->value, 0.5f / 2688.0f);
}

TEST(FakeQuantize, NamesTheFirstBadValue) {
  std::vector<float> values(200 * 128, 1.0f);
  values[170 * 128 + 5] = std::numeric_limits<float>::infinity();
  const DenseMatrix rows = dense_matrix(values, 200, 128, Element::kF32);
  const DenseMatrix good = dense_matrix(std::vector<float>(3 * 128, 1.0f), 3, 128, Element::kF32);
  for (const Format& format : formats()) {
    const QuantizeOptions options = options_of(format, format.is_dense() ? "" : default_rule(format).name());
    const FakeQuantizer quantizer(options);
    std::vector<float> out(values.size());
    const auto bad = quantizer.run(rows.view(), {SecondLevel::kNone, 1}, out.data(), 128);
    ASSERT_TRUE(bad.has_value()) << format.name;
    EXPECT_EQ(bad->row, 170u) << format.name;
    EXPECT_EQ(bad->col, 5u) << format.name;
    if (!quantizer.quantizer().needs_amax()) continue;
    BadValue found;
    const DenseView both[] = {good.view(), rows.view()};
    EXPECT_FALSE(quantizer.tensor_scale(both, &found).has_value());
    EXPECT_EQ(found.row, 173u);
    EXPECT_EQ(found.col, 5u);
  }
}

}  // namespace
}  // namespace nibble
