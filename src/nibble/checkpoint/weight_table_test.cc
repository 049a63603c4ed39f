#include "nibble/checkpoint/weight_table.h"

#include <gmock/gmock.h>

#include <ctime>

#include "nibble/base/error.h"
#include "nibble/checkpoint/conventions/checkpoint_for_test.h"

namespace nibble {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> names(const WeightTable& table) {
  std::vector<std::string> out;
  for (const Weight& weight : table.weights()) out.push_back(weight.name);
  return out;
}

TEST(WeightTable, EveryTensorOfAPlainCheckpointIsAWeight) {
  TestCheckpoint test;
  test.add("model.embed_tokens.weight", Dtype::kBF16, {4, 2})
      .add("model.norm.weight", Dtype::kF32, {2})
      .add("model.layers.0.q_proj.bias", Dtype::kF16, {4})
      .add("model.layers.0.q_proj.weight", Dtype::kF16, {4, 2})
      .add("gate.e_score_correction_bias", Dtype::kF32, {4})
      .add("gate.tid2eid", Dtype::kI64, {3, 2})
      .add("scalar", Dtype::kF64, {})
      .add("nothing.weight", Dtype::kBF16, {0, 64})
      .add("conv.weight_g", Dtype::kF32, {4, 1})
      .add("conv.weight_v", Dtype::kF32, {4, 3});
  EXPECT_THAT(names(test.table()),
              ElementsAre("conv.weight_g", "conv.weight_v", "gate.e_score_correction_bias", "gate.tid2eid",
                          "model.embed_tokens.weight", "model.layers.0.q_proj.weight", "model.layers.0.q_proj.bias",
                          "model.norm.weight", "nothing.weight", "scalar"));
  EXPECT_TRUE(test.findings().empty());
  EXPECT_EQ(test.weight("scalar").shape.size(), 0U);
  EXPECT_EQ(test.weight("scalar").elements(), 1U);
  EXPECT_EQ(test.values("scalar"), std::vector<float>{0});
  EXPECT_EQ(test.weight("model.norm.weight").rows(), 1U);
  EXPECT_EQ(test.weight("model.norm.weight").cols(), 2U);
  EXPECT_TRUE(test.values("nothing.weight").empty());
  EXPECT_TRUE(test.weight("gate.tid2eid").opaque);
  EXPECT_THROW(test.values("gate.tid2eid"), Error);
  EXPECT_EQ(test.table().find("model.norm"), -1);
  EXPECT_EQ(test.weight("model.norm.weight").format.name, "f32");
}

TEST(WeightTable, DenseValuesOfEveryType) {
  TestCheckpoint test;
  test.add("a.weight", Dtype::kF64, {1, 2}, bytes_of<double>({1.5, -2}))
      .add("b.weight", Dtype::kF32, {1, 2}, bytes_of<float>({1.5, -2}))
      .add("c.weight", Dtype::kBF16, {1, 2}, bytes_of<uint16_t>({0x3FC0, 0xC000}))
      .add("d.weight", Dtype::kF16, {1, 2}, bytes_of<uint16_t>({0x3E00, 0xC000}))
      .add("e", Dtype::kF8E4M3, {2}, bytes_of<uint8_t>({0x3C, 0xC0}))
      .add("f", Dtype::kF8E5M2, {2}, bytes_of<uint8_t>({0x3E, 0xC0}));
  for (const char* name : {"a.weight", "b.weight", "c.weight", "d.weight", "e", "f"}) {
    EXPECT_EQ(test.values(name), (std::vector<float>{1.5, -2})) << name;
    EXPECT_NO_THROW(parse_format(test.weight(name).format.name)) << name;
  }
}

TEST(WeightTable, TransposedStacksAreTurned) {
  TestCheckpoint test;
  std::vector<float> stored(2 * 3 * 4);
  for (size_t i = 0; i < stored.size(); ++i) stored[i] = static_cast<float>(i);
  test.add("x.down_proj", Dtype::kF32, {2, 3, 4}, bytes_of(stored));
  Weight weight = test.weight("x.down_proj");
  weight.row_order = RowOrder::kTransposed;
  std::swap(weight.shape[1], weight.shape[2]);
  EXPECT_FALSE(weight.convention->rows_contiguous(weight));
  EXPECT_EQ(read_rows_f32(test.checkpoint(), weight, 1, 1, 2), (std::vector<float>{13, 17, 21, 14, 18, 22}));
  expect_cuts_equal_whole(test.checkpoint(), weight);
}

// The four spellings of KV scales are tensors of their own: nobody may take them for a weight's scale.
TEST(WeightTable, C65_kv_scales_in_every_spelling_stay_by_themselves) {
  TestCheckpoint test;
  test.settings(R"({"quant_method": "fp8", "weight_block_size": [128, 128]})");
  const std::vector<std::string> spellings = {"a.self_attn.k_scale",
                                              "a.self_attn.v_scale",
                                              "b.self_attn.k_proj.k_scale",
                                              "b.self_attn.v_proj.v_scale",
                                              "c.self_attn.kv_scale",
                                              "d.self_attn.k_proj.output_scale",
                                              "d.self_attn.v_proj.output_scale"};
  for (const std::string& name : spellings) test.add(name, Dtype::kF32, {1}, bytes_of<float>({0.02F}));
  for (const char* module : {"b.self_attn.k_proj", "d.self_attn.v_proj"}) {
    test.add(std::string(module) + ".weight", Dtype::kF8E4M3, {4, 4})
        .add(std::string(module) + ".weight_scale_inv", Dtype::kF32, {1, 1});
  }
  for (const std::string& name : spellings) EXPECT_EQ(test.values(name), std::vector<float>{0.02F}) << name;
  EXPECT_EQ(test.weight("b.self_attn.k_proj.weight").convention->name(), "deepseek");
  EXPECT_TRUE(test.findings().empty());
}

TestCheckpoint& add_int4(TestCheckpoint* test) {
  return test->add("m.weight_packed", Dtype::kI32, {2, 8})
      .add("m.weight_scale", Dtype::kBF16, {2, 2})
      .add("m.weight_shape", Dtype::kI64, {2}, bytes_of<int64_t>({2, 64}));
}

// The folder's name and the side file say one thing, the tensors another.
TEST(WeightTable, C57_stored_tensors_decide_and_the_contradiction_is_named) {
  TestCheckpoint test;
  test.settings(R"({"quant_method": "compressed-tensors", "config_groups": {"g": {"weights":
                    {"num_bits": 4, "group_size": 32}}}})")
      .file("hf_quant_config.json",
            R"({"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "NVFP4", "group_size": 16}})");
  add_int4(&test);
  EXPECT_EQ(test.weight("m.weight").convention->name(), "compressed-tensors");
  EXPECT_EQ(test.weight("m.weight").format.name, "int4-g32");
  const std::string line = test.only_finding("config-contradiction");
  EXPECT_EQ(test.findings()[0].severity, Severity::kWarning);
  for (const char* part :
       {"config.json", "hf_quant_config.json", "NVFP4", "compressed-tensors", "m.weight_packed I32"}) {
    EXPECT_THAT(line, HasSubstr(part));
  }
}

TEST(WeightTable, C57_settings_of_another_method_are_named) {
  TestCheckpoint test;
  test.settings(R"({"quant_method": "gptq", "bits": 4, "group_size": 128})");
  add_int4(&test);
  EXPECT_EQ(test.weight("m.weight").format.name, "int4-g32");
  EXPECT_THAT(test.only_finding("config-contradiction"), HasSubstr("gptq"));
}

TEST(WeightTable, SettingsWithoutQuantizedWeightsAreNamed) {
  TestCheckpoint test;
  test.settings(R"({"quant_method": "compressed-tensors"})").add("m.weight", Dtype::kBF16, {2, 2});
  EXPECT_THAT(test.only_finding("config-contradiction"), HasSubstr("no quantized weight"));
}

TEST(WeightTable, PartsWithoutAWeightAreRefused) {
  TestCheckpoint test;
  test.add("a.weight_scale", Dtype::kBF16, {2, 2})
      .add("b.weight", Dtype::kBF16, {2, 64})
      .add("b.weight_scale", Dtype::kBF16, {2, 2})
      .add("c.scale", Dtype::kF8E8M0, {2, 2})
      .add("d.weight", Dtype::kU8, {2, 32})
      .add("d.weight_zero_point", Dtype::kI8, {2, 1});
  ASSERT_EQ(test.findings().size(), 4U);
  EXPECT_EQ(test.findings()[0].tensor, "a.weight_scale");
  EXPECT_EQ(test.findings()[1].tensor, "b.weight_scale");
  EXPECT_THAT(test.findings()[1].message, HasSubstr("not quantized"));
  EXPECT_EQ(test.findings()[2].tensor, "c.scale");
  EXPECT_EQ(test.findings()[3].tensor, "d.weight");
  for (const Finding& finding : test.findings()) {
    EXPECT_EQ(finding.rule, "unmatched-part");
    EXPECT_EQ(finding.severity, Severity::kError);
    EXPECT_THAT(finding.file, HasSubstr("model.safetensors"));
  }
}

TEST(WeightTable, UnknownPartsOfAQuantizedWeightAreRefused) {
  TestCheckpoint test;
  test.settings(R"({"quant_method": "compressed-tensors", "config_groups": {"g": {"weights":
                    {"num_bits": 4, "group_size": 32}}}})");
  add_int4(&test).add("m.weight_rotation", Dtype::kF32, {64, 64});
  EXPECT_THAT(test.only_finding("unsupported"), HasSubstr("m.weight_rotation"));
}

TEST(WeightTable, LayoutsOfOldAreRefusedByName) {
  TestCheckpoint test;
  test.add("a.weight.bitmask", Dtype::kU8, {2, 8})
      .add("a.weight.compressed", Dtype::kBF16, {17})
      .add("a.weight.row_offsets", Dtype::kI64, {2, 1})
      .add("b.meta", Dtype::kI16, {2, 8})
      .add("b.scale_packed", Dtype::kF16, {2, 8})
      .add("b.weight_packed", Dtype::kI32, {2, 8})
      .add("c.weight", Dtype::kF8E4M3Fnuz, {2, 8})
      .add("c.weight_scale", Dtype::kF32, {1});
  ASSERT_EQ(test.findings().size(), 3U);
  EXPECT_THAT(test.findings()[0].message, HasSubstr("sparse-bitmask"));
  EXPECT_THAT(test.findings()[1].message, HasSubstr("marlin-24"));
  EXPECT_THAT(test.findings()[2].message, HasSubstr("FNUZ"));
  for (const Finding& finding : test.findings()) EXPECT_EQ(finding.rule, "unsupported");
}

TEST(WeightTable, BytesWithoutSettingsAreTakenAsTheyStand) {
  TestCheckpoint test;
  test.add("a.weight", Dtype::kF8E4M3, {1, 1}, repeated(0x38, 1));
  EXPECT_EQ(test.values("a.weight"), std::vector<float>{1});
  ASSERT_EQ(test.findings().size(), 1U);
  EXPECT_EQ(test.findings()[0].severity, Severity::kWarning);
}

TEST(WeightTable, C77_rare_types_load) {
  TestCheckpoint test;
  test.add("a", Dtype::kF4, {4, 64}).add("b", Dtype::kF8E8M0, {4, 2}).add("c", Dtype::kF6E2M3, {4, 4});
  EXPECT_EQ(test.weight("a").elements(), 256U);
  EXPECT_EQ(test.weight("b").elements(), 8U);
  EXPECT_FALSE(has_error(test.findings()));
}

TEST(WeightTable, TwoTensorsForOneWeightAreRefused) {
  TestCheckpoint test;
  test.add("x_blocks", Dtype::kU8, {1, 2, 2, 16})
      .add("x_scales", Dtype::kU8, {1, 2, 2})
      .add("x.blocks", Dtype::kU8, {1, 2, 2, 16})
      .add("x.scales", Dtype::kU8, {1, 2, 2});
  EXPECT_THAT(test.only_finding("mixed"), HasSubstr("x"));
}

// 250,000 weights of two tensors, as in the largest released model (FORMATS.md §4.4).
TEST(WeightTable, HalfAMillionNamesInWellUnderASecond) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(NDEBUG)
  GTEST_SKIP() << "a measurement";
#endif
  std::vector<TensorDecl> decls;
  for (int layer = 0; layer < 93; ++layer) {
    for (int expert = 0; expert < 896; ++expert) {
      for (const char* w : {"w1", "w2", "w3"}) {
        const std::string module = "language_model.model.layers." + std::to_string(layer) +
                                   ".block_sparse_moe.experts." + std::to_string(expert) + "." + w;
        decls.push_back({module + ".weight_packed", Dtype::kU8, {1, 16}});
        decls.push_back({module + ".weight_scale", Dtype::kU8, {1, 1}});
      }
    }
  }
  testing::TempDir folder;
  {
    const SafetensorsLayout layout = plan_safetensors(std::move(decls), {});
    OutputFile file = OutputFile::create(folder / "model.safetensors");
    file.write_at(0, std::as_bytes(std::span(layout.header)));
    const std::byte end[1] = {};
    file.write_at(layout.file_bytes - 1, end);
    file.commit();
  }
  const Checkpoint checkpoint = Checkpoint::open(folder.path());
  ASSERT_EQ(checkpoint.tensors().size(), 499968U);
  Findings findings;
  const std::clock_t begin = std::clock();
  const WeightTable table = WeightTable::build(checkpoint, &findings);
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  RecordProperty("cpu_seconds", std::to_string(seconds));
  EXPECT_EQ(table.weights().size(), 249984U);
  EXPECT_TRUE(findings.empty());
  EXPECT_LT(seconds, 1.0);
}

}  // namespace
}  // namespace nibble
