#include "nibble/train/fake_quant.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstring>
#include <limits>

#include "nibble/base/error.h"
#include "nibble/base/rng.h"
#include "nibble/numerics/decode.h"
#include "nibble/testing/thrown_error.h"
#include "nibble/train/threads.h"

namespace nibble {
namespace {

using ::testing::HasSubstr;
using testing::thrown_error;

torch::Tensor random_weights(const std::vector<int64_t>& sizes, uint64_t seed) {
  torch::Tensor tensor = torch::empty(sizes);
  auto* values = tensor.data_ptr<float>();
  for (int64_t i = 0; i < tensor.numel(); ++i)
    values[i] = static_cast<float>(0.05 * random_normal(seed, static_cast<uint64_t>(i)));
  return tensor;
}

DenseView view_of(const torch::Tensor& matrix) {
  return {reinterpret_cast<const std::byte*>(matrix.data_ptr<float>()), Element::kF32,
          static_cast<uint64_t>(matrix.size(0)), static_cast<uint64_t>(matrix.size(1)),
          static_cast<uint64_t>(matrix.size(1)) * 4};
}

// decode(encode(matrix)), one matrix after the other, with one second-level scale for all of them.
std::vector<torch::Tensor> packed_and_read(const std::vector<torch::Tensor>& matrices, const FakeQuant& how) {
  const Quantizer quantizer({.format = how.format, .rule = how.rule, .second_level = how.second_level});
  float amax = 0;
  for (const torch::Tensor& matrix : matrices) amax = std::max(amax, abs_max(view_of(matrix)).amax);
  const TensorScale scale = quantizer.needs_amax() ? quantizer.tensor_scale(amax, Element::kF32) : TensorScale{};
  std::vector<torch::Tensor> results;
  for (const torch::Tensor& matrix : matrices) {
    const DenseView rows = view_of(matrix);
    EncodedMatrix packed = EncodedMatrix::make(how.format, rows.rows, rows.cols);
    packed.tensor_scale = scale;
    EXPECT_FALSE(quantizer.encode(rows, scale, packed.mutable_view(), nullptr).has_value());
    torch::Tensor out = torch::empty_like(matrix);
    decode(packed.view(), out.data_ptr<float>(), rows.cols);
    results.push_back(out);
  }
  return results;
}

bool same_bits(const torch::Tensor& got, const torch::Tensor& wanted) {
  const torch::Tensor one = got.contiguous(), other = wanted.contiguous();
  return one.sizes() == other.sizes() &&
         std::memcmp(one.data_ptr(), other.data_ptr(), static_cast<size_t>(one.numel()) * 4) == 0;
}

std::vector<FakeQuant> all_schemes() {
  std::vector<FakeQuant> list;
  for (const Format& format : example_writable_formats()) {
    if (format.is_dense()) list.push_back({format, {}, SecondLevel::kNone});
    for (const ScaleRule* rule : scale_rules()) {
      if (!rule->applies(format)) continue;
      list.push_back(fake_quant_named(format.name, rule->name));
      // A search over whole matrices is numerics' to test.
      if (format.block_rows != 0) list.push_back(fake_quant_named(format.name, "mse." + std::string(rule->name)));
      if (format.two_level) list.push_back({format, list.back().rule, SecondLevel::kDivide});
    }
  }
  return list;
}

TEST(FakeQuantTensor, ForwardIsWhatPackedWeightsReadBackAs) {
  set_train_threads(2);
  const torch::Tensor weight = random_weights({3, 140, 256}, 1);
  for (const FakeQuant& how : all_schemes()) {
    const torch::Tensor got = fake_quantize(weight, how);
    for (int64_t i = 0; i < 3; ++i) {
      ASSERT_TRUE(same_bits(got[i], packed_and_read({weight[i]}, how).front()))
          << how.format.name << " " << how.rule.name() << " matrix " << i;
    }
  }
}

TEST(FakeQuantTensor, ViewsAndOtherStridesAreRead) {
  const FakeQuant how = fake_quant_named("int4-g32");
  const torch::Tensor wide = random_weights({64, 96}, 2);
  const torch::Tensor cut = wide.narrow(1, 32, 64), turned = wide.t();
  EXPECT_TRUE(same_bits(fake_quantize(cut, how), packed_and_read({cut.contiguous()}, how).front()));
  EXPECT_TRUE(same_bits(fake_quantize(turned, how), packed_and_read({turned.contiguous()}, how).front()));
  EXPECT_EQ(fake_quantize(torch::empty({0, 4, 32}), how).sizes(), torch::IntArrayRef({0, 4, 32}));
}

TEST(FakeQuantTensor, TogetherMatricesShareTheSecondLevel) {
  const FakeQuant how = fake_quant_named("nvfp4");
  const torch::Tensor gate = random_weights({2, 32, 64}, 3), up = random_weights({2, 48, 64}, 4) * 3;
  const std::vector<torch::Tensor> got = fake_quantize_together({gate, up}, how);
  for (int64_t i = 0; i < 2; ++i) {
    const auto wanted = packed_and_read({gate[i].contiguous(), up[i].contiguous()}, how);
    EXPECT_TRUE(same_bits(got[0][i], wanted[0])) << i;
    EXPECT_TRUE(same_bits(got[1][i], wanted[1])) << i;
    EXPECT_FALSE(same_bits(fake_quantize(gate, how)[i], wanted[0])) << "shares no scale with a larger matrix";
  }
}

// d/dw of Σ c · round(w) is c, also where the range's end clips: at code -8 of amax / 7.5 and beyond code 7.
TEST(FakeQuantTensor, GradientsPassUnchanged) {
  for (const FakeQuant& how : all_schemes()) {
    torch::Tensor weight = random_weights({2, 32, 256}, 5).requires_grad_(true);
    const torch::Tensor factor = random_weights({2, 32, 256}, 6);
    (fake_quantize(weight, how) * factor).sum().backward();
    ASSERT_TRUE(same_bits(weight.grad(), factor)) << how.format.name << " " << how.rule.name();
  }
  torch::Tensor clipped = torch::tensor({{7.5f, -7.5f}}).repeat({1, 16}).requires_grad_(true);
  const torch::Tensor rounded = fake_quantize(clipped, fake_quant_named("int4-g32", "int4.amax7_5"));
  EXPECT_EQ(rounded.min().item<float>(), -8.0f);
  EXPECT_EQ(rounded.max().item<float>(), 7.0f);
  rounded.sum().backward();
  EXPECT_TRUE(torch::equal(clipped.grad(), torch::ones({1, 32})));
}

TEST(FakeQuantTensor, SecondStepSeesTheChangedWeight) {
  const FakeQuant how = fake_quant_named("mxfp4");
  torch::Tensor weight = random_weights({4, 32}, 7).requires_grad_(true);
  torch::optim::SGD optimizer({weight}, 0.5);
  fake_quantize(weight, how).sum().backward();
  const torch::Tensor before = weight.detach().clone();
  optimizer.step();
  EXPECT_TRUE(torch::equal(weight.detach(), before - 0.5f));
  EXPECT_TRUE(same_bits(fake_quantize(weight, how).detach(), packed_and_read({weight.detach()}, how).front()));
}

TEST(FakeQuantTensor, IntoIsTheSame) {
  const FakeQuant how = fake_quant_named("nvfp4", "nv.four_six");
  torch::Tensor weight = random_weights({2, 20, 64}, 8);
  const torch::Tensor wanted = fake_quantize(weight, how);
  torch::Tensor out = torch::empty_like(weight);
  fake_quantize_into(weight, how, out);
  EXPECT_TRUE(same_bits(out, wanted));
  fake_quantize_into(weight, how, weight);
  EXPECT_TRUE(same_bits(weight, wanted));
}

TEST(FakeQuantTensor, ThreadsChangeNothing) {
  const torch::Tensor weight = random_weights({5, 300, 512}, 9);
  for (const char* format : {"int4-g32", "nvfp4", "fp8-block"}) {
    const FakeQuant how = fake_quant_named(format);
    set_train_threads(1);
    const torch::Tensor one = fake_quantize(weight, how);
    set_train_threads(3);
    EXPECT_TRUE(same_bits(fake_quantize(weight, how), one)) << format;
  }
}

TEST(FakeQuantTensor, RefusesWhatCannotBePacked) {
  const FakeQuant how = fake_quant_named("int4-g32");
  const std::string group = thrown_error([&] { fake_quantize(torch::zeros({2, 8, 48}), how, "experts.down"); }).what();
  EXPECT_THAT(group, HasSubstr("48 columns of a (8, 48) matrix are not a multiple of int4-g32's block of 32"));
  EXPECT_THAT(group, HasSubstr("experts.down"));
  EXPECT_THAT(group, HasSubstr("legal_groups 16"));
  EXPECT_THAT(thrown_error([&] { fake_quantize(torch::zeros({32}), how); }).what(), HasSubstr("shape (32)"));
  EXPECT_THAT(thrown_error([&] { fake_quantize(torch::zeros({2, 32}, torch::kFloat64), how); }).what(),
              HasSubstr("type Double"));
  EXPECT_THAT(
      thrown_error([&] { fake_quantize_together({torch::zeros({2, 8, 32}), torch::zeros({3, 8, 32})}, how); }).what(),
      HasSubstr("first_shape (2, 8, 32)"));
  EXPECT_THAT(thrown_error([&] { fake_quant_named("int3"); }).what(), HasSubstr("int3"));
  EXPECT_THAT(thrown_error([&] { fake_quant_named("mxfp4", "int4.amax7"); }).what(), HasSubstr("mx.even"));
}

TEST(FakeQuantTensor, NamesTheWeightThatIsNoNumber) {
  torch::Tensor weight = torch::ones({2, 300, 512});
  weight[1][290][7] = std::numeric_limits<float>::quiet_NaN();
  for (const char* format : {"int4-g32", "mxfp4", "nvfp4", "bf16"}) {
    const std::string said = thrown_error([&] { fake_quantize(weight, fake_quant_named(format), "w"); }).what();
    for (const char* part : {"tensor w", "matrix 1", "row 290", "column 7"})
      EXPECT_THAT(said, HasSubstr(part)) << format;
  }
}

}  // namespace
}  // namespace nibble
