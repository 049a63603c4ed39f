// Quantize, write in cuts of 128 rows, read back: every writable format in every layout that holds it.
#include <gmock/gmock.h>

#include <map>

#include "nibble/base/error.h"
#include "nibble/checkpoint/conventions/checkpoint_for_test.h"
#include "nibble/numerics/quantize_for_test.h"

namespace nibble {
namespace {

using ::testing::HasSubstr;

struct Written {
  WriteRequest request;
  std::vector<EncodedMatrix> slices;
  std::vector<PartDecl> parts;
  std::vector<std::vector<std::byte>> bytes;
};

EncodedView cut(const EncodedMatrix& matrix, uint64_t begin, uint64_t end) {
  const Format& format = matrix.format;
  EncodedView view = matrix.view();
  const uint64_t scale_row = format.block_rows == 0 ? 0 : begin / format.block_rows;
  view.rows = end - begin;
  view.codes += begin * format.code_row_bytes(matrix.cols);
  if (view.scales != nullptr) view.scales += scale_row * format.scale_cols(matrix.cols) * format.scale_bytes();
  if (view.zeros != nullptr) view.zeros += scale_row * format.scale_cols(matrix.cols);
  return view;
}

// Every byte of every part must be written, and once.
Written write(const Convention& layout, const Format& format, const std::string& rule, std::string name,
              std::vector<uint64_t> shape) {
  Written out{{std::move(name), format, shape, Element::kBF16, layout.second_level()}, {}, {}, {}};
  out.parts = layout.declare(out.request);
  std::vector<std::vector<bool>> covered;
  for (const PartDecl& part : out.parts) {
    out.bytes.emplace_back(part.tensor.bytes());
    covered.emplace_back(part.tensor.bytes());
  }
  uint64_t slices = 1;
  for (size_t i = 0; i + 2 < shape.size(); ++i) slices *= shape[i];
  const uint64_t rows = shape[shape.size() - 2];
  for (uint64_t slice = 0; slice < slices; ++slice) {
    const DenseMatrix dense = random_matrix(slice + 1, rows, shape.back());
    if (format.is_dense()) {
      EncodedMatrix matrix = EncodedMatrix::make(format, rows, shape.back());
      convert(dense.view(), format.element, matrix.codes.data());
      out.slices.push_back(std::move(matrix));
    } else {
      QuantizeOptions options = options_for(format, rule);
      if (format.two_level) options.second_level = layout.second_level();
      out.slices.push_back(quantize(dense.view(), options).matrix);
    }
    for (uint64_t row = 0; row == 0 || row < rows; row += 128) {
      const EncodedView view = cut(out.slices.back(), row, std::min(row + 128, rows));
      for (const PartRun& run : layout.emit(out.request, slice, row, view)) {
        auto& part = out.bytes.at(run.part);
        EXPECT_LE(run.offset + run.content().size(), part.size()) << out.parts[run.part].tensor.name;
        for (size_t i = 0; i < run.content().size(); ++i) {
          EXPECT_FALSE(covered[run.part][run.offset + i]) << out.parts[run.part].tensor.name;
          covered[run.part][run.offset + i] = true;
          part[run.offset + i] = run.content()[i];
        }
      }
    }
  }
  for (size_t p = 0; p < covered.size(); ++p) {
    EXPECT_EQ(std::count(covered[p].begin(), covered[p].end(), false), 0) << out.parts[p].tensor.name;
  }
  return out;
}

Json config_of(const Convention& layout, const Format& format, const std::string& rule) {
  ConfigRequest request;
  request.format = format;
  request.rule = rule;
  request.kept = {"lm_head"};
  Json config = Json::object();
  layout.write_config(request, &config);
  return config;
}

std::vector<float> decoded(const EncodedMatrix& matrix) {
  std::vector<float> values(matrix.rows * matrix.cols);
  decode(matrix, values);
  return values;
}

void round_trip(const std::string& layout_name, const Format& format, const std::string& rule, const std::string& name,
                const std::vector<uint64_t>& shape) {
  SCOPED_TRACE(layout_name + " " + format.name + " " + rule + " " + ::testing::PrintToString(shape));
  const Convention& layout = parse_layout(layout_name, format);
  const Written written = write(layout, format, rule, name, shape);
  TestCheckpoint test;
  test.file("config.json", json_text(config_of(layout, format, rule)));
  for (size_t p = 0; p < written.parts.size(); ++p) {
    const TensorDecl& tensor = written.parts[p].tensor;
    test.add(tensor.name, tensor.dtype, tensor.shape, written.bytes[p]);
  }
  ASSERT_EQ(test.table().weights().size(), 1U);
  for (const Finding& finding : test.findings()) ADD_FAILURE() << error_of(finding).what();
  const Weight& weight = test.table().weights()[0];
  EXPECT_EQ(weight.convention, &layout);
  EXPECT_EQ(weight.format.name, format.name);
  EXPECT_EQ(weight.shape, shape);
  for (uint64_t slice = 0; slice < weight.slices(); ++slice) {
    const EncodedMatrix& wrote = written.slices[slice];
    const EncodedMatrix read = read_rows(test.checkpoint(), weight, slice, 0, weight.rows());
    EXPECT_EQ(read.codes, wrote.codes);
    EXPECT_EQ(read.zeros, wrote.zeros);
    EXPECT_TRUE(!format.two_level || read.tensor_scale == wrote.tensor_scale);
    EXPECT_EQ(bits_of(decoded(read)), bits_of(decoded(wrote)));
  }
  expect_cuts_equal_whole(test.checkpoint(), weight);
}

Format with_scale(const std::string& name, ScaleType scale) {
  Format format = parse_format(name);
  format.scale = scale;
  return format;
}

TEST(RoundTrip, CompressedTensorsIntegers) {
  for (const char* name : {"int4-g16", "int4-g32", "int4-g32-asym", "int4-g128", "int4-g128-asym"}) {
    const Format format = parse_format(name);
    const uint64_t group = format.block_cols;
    round_trip("compressed-tensors", format, "", "a.weight", {300, group * 3});
    round_trip("compressed-tensors", format, "", "a.weight", {5, group});
    round_trip("compressed-tensors", format, "", "a.weight", {3, 130, group * 2});
  }
  round_trip("compressed-tensors", with_scale("int4-g32", ScaleType::kF16), "", "a.weight", {130, 96});
  round_trip("compressed-tensors", with_scale("int4-g32-asym", ScaleType::kF32), "", "a.weight", {130, 96});
  round_trip("compressed-tensors", parse_format("int4-g32"), "int4.amax7", "a.weight", {130, 96});
}

TEST(RoundTrip, CompressedTensorsFloats) {
  for (const char* name : {"mxfp4", "nvfp4", "mxfp8", "fp8-channel", "fp8-tensor", "fp8-block"}) {
    const Format format = parse_format(name);
    round_trip("compressed-tensors", format, "", "a.weight", {300, 160});
    round_trip("compressed-tensors", format, "", "a.weight", {1, 32});
    round_trip("compressed-tensors", format, "", "a.weight", {3, 130, 64});
  }
  round_trip("compressed-tensors", parse_format("fp8-block"), "", "a.weight", {129, 131});
  round_trip("compressed-tensors", parse_format("fp8-channel"), "", "a.weight", {7, 5});
  round_trip("compressed-tensors", parse_format("nvfp4"), "nv.ct", "a.weight", {130, 64});
  round_trip("compressed-tensors", parse_format("nvfp4"), "nv.single", "a.weight", {130, 64});
  round_trip("compressed-tensors", with_scale("fp8-channel", ScaleType::kBF16), "", "a.weight", {130, 64});
}

TEST(RoundTrip, GptOss) {
  round_trip("gpt-oss", parse_format("mxfp4"), "", "x.mlp.experts.gate_up_proj", {3, 130, 96});
  round_trip("gpt-oss", parse_format("mxfp4"), "mx.rceil", "x.mlp.experts.down_proj", {2, 1, 32});
}

TEST(RoundTrip, Modelopt) {
  round_trip("modelopt", parse_format("nvfp4"), "", "a.weight", {300, 160});
  round_trip("modelopt", parse_format("nvfp4"), "nv.four_six", "a.weight", {1, 16});
  round_trip("modelopt", parse_format("nvfp4"), "", "x.experts.gate_up_proj", {3, 130, 64});
}

TEST(RoundTrip, Deepseek) {
  for (const char* rule : {"fp8.amax", "fp8.ue8m0"}) {
    round_trip("deepseek", parse_format("fp8-block"), rule, "a.weight", {576, 320});
    round_trip("deepseek", parse_format("fp8-block"), rule, "a.weight", {129, 131});
    round_trip("deepseek", parse_format("fp8-block"), rule, "x.experts.gate_up_proj", {2, 200, 130});
  }
  round_trip("deepseek", with_scale("fp8-block", ScaleType::kE8M0), "fp8.ue8m0", "a.weight", {300, 320});
  for (const ScaleType short_scale : {ScaleType::kBF16, ScaleType::kF16}) {
    round_trip("deepseek", with_scale("fp8-block", short_scale), "", "a.weight", {300, 320});
    round_trip("deepseek", with_scale("fp8-block", short_scale), "", "x.experts.gate_up_proj", {2, 200, 130});
  }
}

TEST(RoundTrip, Dense) {
  for (const char* name : {"bf16", "f16", "f32"}) {
    round_trip("dense", parse_format(name), "", "a.weight", {130, 33});
    round_trip("dense", parse_format(name), "", "a.weight", {2, 3, 5});
    round_trip("dense", parse_format(name), "", "a.weight", {0, 5});
  }
}

TEST(RoundTrip, NamesTypesAndShapesOfTheParts) {
  struct Expected {
    const char* layout;
    const char* format;
    std::vector<std::string> parts;
  };
  const std::vector<Expected> all = {
      {"compressed-tensors",
       "int4-g32-asym",
       {"m.weight_packed I32 [12, 12]", "m.weight_scale BF16 [12, 3]", "m.weight_shape I64 [2]",
        "m.weight_zero_point I32 [2, 3]"}},
      {"compressed-tensors",
       "nvfp4",
       {"m.weight_packed U8 [12, 48]", "m.weight_scale F8_E4M3 [12, 6]", "m.weight_global_scale F32 [1]"}},
      {"compressed-tensors", "mxfp4", {"m.weight_packed U8 [12, 48]", "m.weight_scale U8 [12, 3]"}},
      {"compressed-tensors", "mxfp8", {"m.weight F8_E4M3 [12, 96]", "m.weight_scale U8 [12, 3]"}},
      {"compressed-tensors", "fp8-tensor", {"m.weight F8_E4M3 [12, 96]", "m.weight_scale F32 [1]"}},
      {"compressed-tensors", "fp8-channel", {"m.weight F8_E4M3 [12, 96]", "m.weight_scale F32 [12, 1]"}},
      {"compressed-tensors", "fp8-block", {"m.weight F8_E4M3 [12, 96]", "m.weight_scale F32 [1, 1]"}},
      {"modelopt", "nvfp4", {"m.weight U8 [12, 48]", "m.weight_scale F8_E4M3 [12, 6]", "m.weight_scale_2 F32 []"}},
      {"deepseek", "fp8-block", {"m.weight F8_E4M3 [12, 96]", "m.weight_scale_inv F32 [1, 1]"}},
      {"dense", "bf16", {"m.weight BF16 [12, 96]"}},
  };
  for (const Expected& expected : all) {
    const Format format = parse_format(expected.format);
    std::vector<std::string> parts;
    for (const PartDecl& part :
         parse_layout(expected.layout, format).declare({"m.weight", format, {12, 96}, Element::kBF16, {}})) {
      parts.push_back(part.tensor.name + " " + std::string(dtype_name(part.tensor.dtype)) + " " +
                      shape_text(part.tensor.shape));
    }
    EXPECT_EQ(parts, expected.parts) << expected.layout << " " << expected.format;
  }
}

TEST(Layouts, UnknownOnesAndUnfitFormatsAreRefused) {
  const auto refusal = [](const char* layout, const char* format) -> std::string {
    try {
      parse_layout(layout, parse_format(format));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal("compressed-tensor", "mxfp4"), HasSubstr("did you mean"));
  EXPECT_THAT(refusal("compressed-tensor", "mxfp4"), HasSubstr("--layout gpt-oss"));
  EXPECT_THAT(refusal("gpt-oss", "nvfp4"), HasSubstr("--layout modelopt"));
  EXPECT_THAT(refusal("modelopt", "int4-g32"), HasSubstr("--layout compressed-tensors"));
  EXPECT_THAT(refusal("gptq", "int4-g32"), HasSubstr("--layout compressed-tensors"));
  EXPECT_THAT(refusal("deepseek", "fp8-block32x32"), HasSubstr("fp8-block32x32"));
  EXPECT_EQ(refusal("deepseek", "fp8-block"), "");
}

TEST(Layouts, GptOssHoldsOnlyStacksOfWholeBlocks) {
  const Format format = parse_format("mxfp4");
  const Convention& layout = parse_layout("gpt-oss", format);
  EXPECT_THROW(layout.declare({"m.weight", format, {12, 96}, Element::kBF16, {}}), Error);
  EXPECT_THROW(layout.declare({"m", format, {2, 12, 33}, Element::kBF16, {}}), Error);
}

}  // namespace
}  // namespace nibble
