// Which of several formats a plan is about, and which are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string_view>

#include "nibble/base/error.h"
#include "nibble/base/file.h"
#include "nibble/models/family.h"
#include "nibble/plan/launch.h"
#include "nibble/plan/model_rows.h"
#include "nibble/plan/plan.h"
#include "nibble/testing/temp_dir.h"
#include "nibble/testing/thrown_error.h"
#include "nibble/testing/tiny.h"

namespace nibble {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using testing::thrown_error;

PlanRequest request_for(const std::string& model, std::vector<std::string> formats, uint64_t gpus) {
  PlanRequest request;
  request.model = model;
  request.formats = std::move(formats);
  request.gpus = gpus;
  return request;
}

const FormatRow& detail_of(const Plan& plan) { return plan.rows[plan.detail]; }

// Experts of gpt-oss are 2,880 wide: 22.5 groups of 128.
TEST(ChosenRow, an_impossible_format_is_passed_over) {
  for (const uint64_t gpus : {0U, 1U}) {
    const Plan plan = make_plan(request_for("gpt-oss-120b", {"int4-g128", "mxfp4"}, gpus));
    EXPECT_FALSE(plan.rows[0].refused.empty());
    EXPECT_EQ(detail_of(plan).format, "mxfp4");
    ASSERT_TRUE(plan.chosen);
    EXPECT_GT(plan.chosen->memory.weights * plan.gpus, 60'000'000'000U);
    EXPECT_EQ(plan.fits, plan.chosen->memory.fits());
  }
  // On a GPU too small for it, it is the one that does not fit and is helped.
  PlanRequest small = request_for("gpt-oss-120b", {"int4-g128", "mxfp4"}, 1);
  small.gpu = "l40s";
  const Plan plan = make_plan(small);
  EXPECT_FALSE(plan.fits);
  EXPECT_EQ(detail_of(plan).format, "mxfp4");
  EXPECT_FALSE(plan.changes.empty());
}

TEST(ChosenRow, a_format_that_is_too_large_yields_to_the_next) {
  const Plan plan = make_plan(request_for("kimi-k2.5", {"bf16", "int4-g32"}, 8));
  EXPECT_TRUE(plan.fits);
  EXPECT_EQ(detail_of(plan).format, "int4-g32");
  EXPECT_TRUE(plan.chosen->memory.fits());
  EXPECT_THAT(launch_config(plan, ServingEngine::kVllm), HasSubstr("--format int4-g32"));
  // Of those that fit the first, not the smallest.
  EXPECT_EQ(detail_of(make_plan(request_for("kimi-k2.5", {"int4-g32", "mxfp4"}, 8))).format, "int4-g32");
  PlanRequest flat = request_for("", {"bf16", "int4-g32"}, 8);
  flat.total = 1e12;
  flat.active = 32e9;
  EXPECT_EQ(detail_of(make_plan(flat)).format, "int4-g32");
}

TEST(ChosenRow, if_nothing_fits_it_is_about_the_release) {
  const Plan plan = make_plan(request_for("kimi-k2.5", {}, 1));
  EXPECT_FALSE(plan.fits);
  EXPECT_EQ(detail_of(plan).format, "released");
  EXPECT_EQ(detail_of(make_plan(request_for("kimi-k2.5", {"bf16", "int4-g32"}, 1))).format, "bf16");
}

TEST(ChosenRow, what_quantize_does_not_write_is_no_format) {
  for (const char* name : {"int4-g45", "int4-g8", "int4-g12", "int4-g1", "q4_k", "f32"}) {
    const Error error = thrown_error([&] { make_plan(request_for("gpt-oss-120b", {name}, 8)); });
    EXPECT_THAT(error.what(), AllOf(HasSubstr("int4-gN"), HasSubstr("power of two"))) << name;
    const Plan plan = make_plan(request_for("gpt-oss-120b", {name, "mxfp4"}, 8));
    EXPECT_THAT(plan.rows[0].refused, HasSubstr("int4-gN")) << name;
    EXPECT_EQ(detail_of(plan).format, "mxfp4");
  }
}

class Folder : public ::testing::Test {
 protected:
  std::string write(const testing::TinyCheckpoint& tiny) {
    tiny.write(dir_.path());
    return dir_.path().string();
  }
  testing::TempDir dir_;
};

uint64_t bytes_of(const Plan& plan, const std::string& format) {
  for (const FormatRow& row : plan.rows) {
    if (row.format == format) return row.size.weight_bytes;
  }
  return 0;
}

TEST_F(Folder, tensors_of_no_weight_are_in_every_format) {
  testing::TinyCheckpoint tiny = testing::TinyCheckpoint::qwen3_moe();
  const Plan before = make_plan(request_for(write(tiny), {}, 1));
  tiny.add("vision.table", Dtype::kI8, {1000}, std::vector<std::byte>(1000));
  const Plan after = make_plan(request_for(write(tiny), {}, 1));
  ASSERT_EQ(after.rows.size(), 6U);
  for (const FormatRow& row : after.rows) {
    if (row.refused.empty()) {
      EXPECT_EQ(row.size.weight_bytes, bytes_of(before, row.format) + 1000) << row.format;
    }
  }
  EXPECT_EQ(bytes_of(after, "bf16"), bytes_of(after, "released"));
}

// Every parameter of GLM-4.5's architecture in small: its MTP layer has an embedding and a head of its own, and routers
// have a bias in float32.
testing::TinyCheckpoint glm() {
  testing::TinyCheckpoint tiny = testing::TinyCheckpoint::qwen3_moe();
  Json config = tiny.config();
  config.update(Json{{"architectures", {"Glm4MoeForCausalLM"}},
                     {"model_type", "glm4_moe"},
                     {"n_routed_experts", 4},
                     {"n_shared_experts", 1},
                     {"first_k_dense_replace", 1},
                     {"use_qk_norm", true},
                     {"num_nextn_predict_layers", 1}});
  config.erase("num_experts");
  tiny = testing::TinyCheckpoint();
  tiny.config() = config;
  const Family& family = *find_family(config);
  family.inventory(family.parse(config, "glm"), [&](ParamSpec&& param) {
    uint64_t elements = 1;
    for (const uint64_t dim : param.shape) elements *= dim;
    const bool vector = param.name.ends_with("correction_bias");
    tiny.add(param.name, vector ? Dtype::kF32 : Dtype::kBF16, param.shape,
             std::vector<std::byte>(elements * (vector ? 4 : 2)));
  });
  return tiny;
}

uint64_t stored_bytes(testing::TinyCheckpoint& tiny, std::string_view glob) {
  uint64_t bytes = 0;
  for (const std::string& name : tiny.matching(glob)) bytes += tiny.at(name).data.size();
  return bytes;
}

// Routed experts in the format, four bits and a scale for 32 of them; everything else as it lies there.
TEST_F(Folder, what_is_not_quantized_is_counted_as_it_is_stored) {
  testing::TinyCheckpoint tiny = glm();
  ASSERT_TRUE(tiny.has("model.layers.2.shared_head.head.weight") && tiny.has("model.layers.2.embed_tokens.weight"));
  const uint64_t all = stored_bytes(tiny, "*");
  const uint64_t experts = stored_bytes(tiny, "model.layers.1.mlp.experts.*");
  ASSERT_EQ(experts, 4U * 3 * 32 * 64 * 2);
  const Plan plan = make_plan(request_for(write(tiny), {}, 1));
  EXPECT_EQ(bytes_of(plan, "bf16"), all);
  EXPECT_EQ(bytes_of(plan, "mxfp4"), all - experts + experts / 4 + experts / 2 / 32);
  EXPECT_EQ(bytes_of(plan, "int4-g32"), all - experts + experts / 4 + experts / 2 / 32 * 2);
}

// The embedding is the head, and the file has it twice all the same.
TEST_F(Folder, a_tied_head_that_is_stored_takes_its_bytes) {
  testing::TinyCheckpoint tiny = testing::TinyCheckpoint::qwen3_moe();
  const Plan untied = make_plan(request_for(write(tiny), {}, 1));
  tiny.config()["tie_word_embeddings"] = true;
  const Plan tied = make_plan(request_for(write(tiny), {}, 1));
  ASSERT_EQ(tied.rows.size(), untied.rows.size());
  const uint64_t embedding = tiny.at("lm_head.weight").data.size();
  for (size_t i = 0; i < tied.rows.size(); ++i) {
    EXPECT_EQ(tied.rows[i].size.weight_bytes, untied.rows[i].size.weight_bytes) << tied.rows[i].format;
    EXPECT_EQ(tied.rows[i].size.active_bytes, untied.rows[i].size.active_bytes) << tied.rows[i].format;
  }
  // A GPU holds one of them.
  EXPECT_EQ(tied.chosen->memory.weights + embedding, untied.chosen->memory.weights);
}

// As from its configuration: the smallest that fits; it is no low-bit release.
TEST_F(Folder, of_16_bits_is_no_release_to_be_kept) {
  const Plan plan = make_plan(request_for(write(testing::TinyCheckpoint::qwen3_moe()), {}, 1));
  EXPECT_EQ(plan.rows[0].format, "released");
  EXPECT_EQ(detail_of(plan).format, "mxfp4");
  const Plan plain = make_plan(request_for(dir_.path().string(), {"bf16"}, 1));
  EXPECT_THAT(launch_config(plain, ServingEngine::kVllm), Not(HasSubstr("nibble quantize")));
}

TEST_F(Folder, what_is_missing_is_named_once) {
  testing::TinyCheckpoint tiny = testing::TinyCheckpoint::qwen3_moe();
  tiny.config()["num_hidden_layers"] = 3;
  const Plan plan = make_plan(request_for(write(tiny), {}, 1));
  EXPECT_THAT(plan.notes, Contains(AllOf(HasSubstr("model.layers.2."), HasSubstr(" more"))));
  EXPECT_THAT(plan.notes, SizeIs(::testing::Le(2)));
}

}  // namespace
}  // namespace nibble
