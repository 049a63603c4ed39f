// Whatever has been changed since quantize wrote it is found and named; so is a BASE that is not what was quantized.
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "nibble/base/log.h"
#include "nibble/testing/folder.h"
#include "nibble/verify/rederive_for_test.h"

namespace nibble {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): helpers of tests, no header

class Damaged : public ::testing::Test {
 protected:
  void SetUp() override {
    log::set_level(log::Level::kOff);
    copy_folder(golden_dir() / "models" / "qwen3_moe", base());
    QuantizeRequest request = request_for(base(), target(), "nvfp4");
    request.shard_bytes = 60'000;
    quantize(request);
  }
  Path base() const { return dir_ / "base"; }
  Path target() const { return dir_ / "target"; }
  VerifyReport rederived(int threads = 2) const { return rederive_quietly(target(), base(), threads); }
  Findings found() const { return rederive_findings(rederived()); }

  static void flip(const Path& file, uint64_t offset, int bits = 1) {
    std::string content = read_text(file, UINT64_MAX);
    ASSERT_LT(offset, content.size());
    content[offset] = static_cast<char>(content[offset] ^ bits);
    write_atomically(file, content);
  }
  // Changes one bit of a tensor's byte `at`; returns the file.
  static Path flip_tensor(const Path& folder, const std::string& name, uint64_t at) {
    const Checkpoint checkpoint = Checkpoint::open(folder);
    const int64_t found = checkpoint.find(name);
    EXPECT_GE(found, 0) << name;
    const StoredTensor& tensor = checkpoint.tensors()[static_cast<size_t>(found)];
    EXPECT_LT(at, tensor.bytes);
    flip(checkpoint.file_of(tensor), tensor.offset + at);
    return checkpoint.file_of(tensor);
  }
  void remove_shards() const {
    for (const Path& file : list_files(target())) {
      if (file.extension() == ".safetensors") std::filesystem::remove(file);
    }
  }
  void edit_manifest(const std::function<void(Json*)>& edit) const {
    Json manifest = read_json(target() / "nibble.json");
    edit(&manifest);
    write_atomically(target() / "nibble.json", json_text(manifest));
  }
  // The one finding there is, after `edit`.
  Finding after(const std::function<void(Json*)>& edit) const {
    edit_manifest(edit);
    const VerifyReport report = rederived();
    const Findings all = rederive_findings(report);
    EXPECT_FALSE(report.ok);
    EXPECT_EQ(all.size(), 1u) << text_of(all);
    return all.empty() ? Finding{} : all.front();
  }

  const std::string expert_ = "model.layers.1.mlp.experts.2.up_proj.";

 private:
  TempDir dir_;
};

TEST_F(Damaged, OneBitOfACodeOrAScale) {
  for (const char* part : {"weight_packed", "weight_scale", "weight_global_scale"}) {
    const uint64_t at = std::string_view(part) == "weight_global_scale" ? 0 : 5;
    const Path file = flip_tensor(target(), expert_ + part, at);
    const VerifyReport report = rederived();
    const Findings all = rederive_findings(report);
    EXPECT_FALSE(report.ok);
    ASSERT_EQ(all.size(), 1u) << text_of(all);
    EXPECT_EQ(all[0].severity, Severity::kError);
    EXPECT_EQ(all[0].file, file.string());
    EXPECT_EQ(all[0].tensor, expert_ + part);
    EXPECT_EQ(value_of(all[0], "first_difference"), std::to_string(at));
    EXPECT_EQ(value_of(all[0], "differing"), "1");
    EXPECT_EQ(std::stoi(value_of(all[0], "expected"), nullptr, 16) ^ std::stoi(value_of(all[0], "stored"), nullptr, 16),
              1);
    ASSERT_TRUE(report.rederived.has_value());
    EXPECT_EQ(report.rederived->differing, 1u);
    EXPECT_EQ(report.rederived->differing_bytes, 1u);
    flip_tensor(target(), expert_ + part, at);
  }
  EXPECT_TRUE(found().empty());
}

TEST_F(Damaged, AKeptTensor) {
  flip_tensor(target(), "model.layers.0.input_layernorm.weight", 1);
  const Findings all = found();
  ASSERT_EQ(all.size(), 1u) << text_of(all);
  EXPECT_EQ(all[0].tensor, "model.layers.0.input_layernorm.weight");
}

TEST_F(Damaged, AHeaderThatReadsTheSame) {
  // The metadata: no reader minds it.
  const Path there = target() / Checkpoint::open(target()).files()[1].name;
  const size_t at = read_text(there, UINT64_MAX).find("nv.two_level");
  ASSERT_NE(at, std::string::npos);
  flip(there, at);
  const Findings all = found();
  ASSERT_EQ(all.size(), 1u) << text_of(all);
  EXPECT_EQ(all[0].file, there.string());
  EXPECT_EQ(value_of(all[0], "first_difference"), std::to_string(at));
  EXPECT_NE(all[0].message.find("the header"), std::string::npos) << all[0].message;
}

TEST_F(Damaged, FilesBesideTheWeights) {
  for (const char* name : {"config.json", "generation_config.json", "model.safetensors.index.json"}) {
    const std::string original = read_text(target() / name, UINT64_MAX);
    write_atomically(target() / name, std::string_view(original + " "));
    Findings all = found();
    ASSERT_EQ(all.size(), 1u) << text_of(all);
    EXPECT_EQ(all[0].file, (target() / name).string());
    EXPECT_EQ(value_of(all[0], "first_difference"), std::to_string(original.size()));
    EXPECT_EQ(value_of(all[0], "expected"), "none");
    if (std::string_view(name) != "config.json") {
      std::filesystem::remove(target() / name);
      all = found();
      ASSERT_EQ(all.size(), 1u) << text_of(all);
      EXPECT_NE(all[0].message.find("missing"), std::string::npos) << all[0].message;
    }
    write_atomically(target() / name, std::string_view(original));
  }
}

TEST_F(Damaged, AnotherBase) {
  const std::string input = "model.layers.1.mlp.experts.2.up_proj.weight";
  flip_tensor(base(), input, 1);
  const VerifyReport report = rederived();
  const Findings all = rederive_findings(report);
  ASSERT_EQ(all.size(), 1u) << text_of(all);  // what was made from it differs, which is not told
  EXPECT_EQ(all[0].tensor, input);
  EXPECT_TRUE(all[0].file.starts_with(base().string())) << all[0].file;
  EXPECT_EQ(value_of(all[0], "recorded").size(), 32u);
  EXPECT_EQ(value_of(all[0], "base").size(), 32u);
  EXPECT_NE(value_of(all[0], "recorded"), value_of(all[0], "base"));
  ASSERT_TRUE(report.rederived.has_value());
  EXPECT_GT(report.rederived->differing, 0u);
}

TEST_F(Damaged, ABaseThatCannotBeQuantized) {
  const std::string input = "model.layers.1.mlp.experts.2.up_proj.weight";
  const Checkpoint checkpoint = Checkpoint::open(base());
  const StoredTensor& tensor = checkpoint.tensors()[static_cast<size_t>(checkpoint.find(input))];
  std::string content = read_text(checkpoint.file_of(tensor), UINT64_MAX);
  content.replace(tensor.offset + 18, 2, "\xc0\x7f");  // a NaN
  write_atomically(checkpoint.file_of(tensor), content);
  const VerifyReport report = rederived();
  const Findings all = rederive_findings(report);
  ASSERT_EQ(all.size(), 1u) << text_of(all);
  EXPECT_EQ(all[0].tensor, input);
  EXPECT_NE(all[0].message.find("not a number"), std::string::npos) << all[0].message;
  ASSERT_TRUE(report.rederived.has_value());
  EXPECT_GT(report.rederived->differing, 0u);
  EXPECT_GT(report.rederived->tensors, 0u);
}

TEST_F(Damaged, ABaseOfAnotherFamilyOrNone) {
  VerifyReport report = rederive_quietly(target(), golden_dir() / "models" / "mixtral");
  Findings all = rederive_findings(report);
  ASSERT_EQ(all.size(), 1u) << text_of(all);
  EXPECT_EQ(value_of(all[0], "recorded"), "qwen3_moe");
  EXPECT_EQ(value_of(all[0], "base"), "mixtral");
  EXPECT_FALSE(report.rederived.has_value());

  VerifyOptions options;
  options.rederive = true;
  all = rederive_findings(verify_quietly(target(), options));
  ASSERT_EQ(all.size(), 1u) << text_of(all);
  EXPECT_NE(all[0].message.find("--against BASE"), std::string::npos) << all[0].message;

  std::filesystem::resize_file(base() / "model.safetensors", 5'000);
  report = rederived();
  all = rederive_findings(report);
  ASSERT_EQ(all.size(), 1u) << text_of(all);
  EXPECT_NE(all[0].message.find("BASE is damaged"), std::string::npos) << all[0].message;
}

// ---- whole tensors and files

TEST_F(Damaged, TensorsInOtherFilesAreOneFinding) {
  const TinyCheckpoint tiny = TinyCheckpoint::load(target());
  remove_shards();
  tiny.write(target(), 7);
  const VerifyReport report = rederived();
  Findings all = rederive_findings(report);
  ASSERT_EQ(all.size(), 1u) << text_of(all);
  EXPECT_EQ(value_of(all[0], "stored_files"), "7");
  ASSERT_TRUE(report.rederived.has_value());
  EXPECT_EQ(report.rederived->tensors, report.tensors);
  EXPECT_EQ(report.rederived->differing_bytes, 0u);

  flip_tensor(target(), expert_ + "weight_packed", 3);
  all = rederive_findings(rederived());
  ASSERT_EQ(all.size(), 2u) << text_of(all);
  EXPECT_TRUE(all[0].tensor == expert_ + "weight_packed" || all[1].tensor == expert_ + "weight_packed");
}

TEST_F(Damaged, MissingExtraAndOtherShapes) {
  TinyCheckpoint tiny = TinyCheckpoint::load(target());
  tiny.drop(expert_ + "weight_scale");
  tiny.drop("model.layers.0.input_layernorm.weight");
  tiny.add("extra", Dtype::kU8, {3}, std::vector<std::byte>(3));
  tiny.at("model.norm.weight").shape.insert(tiny.at("model.norm.weight").shape.begin(), 1);
  remove_shards();
  tiny.write(target(), 2);
  const VerifyReport report = rederived();
  const std::string text = text_of(rederive_findings(report));
  EXPECT_NE(text.find("2 tensors that quantize makes"), std::string::npos) << text;
  EXPECT_NE(text.find("1 tensor of the checkpoint"), std::string::npos) << text;
  EXPECT_NE(text.find("model.norm.weight: stored as BF16 [1, "), std::string::npos) << text;
  ASSERT_TRUE(report.rederived.has_value());
  EXPECT_GE(report.rederived->differing, 4u);
}

TEST_F(Damaged, ALostShardIsNamed) {
  const std::string lost = Checkpoint::open(target()).files()[1].name;
  std::filesystem::remove(target() / lost);
  const std::string text = text_of(rederive_findings(rederived()));
  EXPECT_NE(text.find(lost + ": : the file is missing"), std::string::npos) << text;
  EXPECT_NE(text.find("are not in the checkpoint"), std::string::npos) << text;
}

TEST_F(Damaged, BytesAfterTheLastTensor) {
  const Path file = target() / Checkpoint::open(target()).files()[0].name;
  write_atomically(file, std::string_view(read_text(file, UINT64_MAX) + "xyz"));
  VerifyOptions options;
  options.against = base();
  options.rederive = true;
  options.allow_trailing = true;
  const Findings all = rederive_findings(verify_quietly(target(), options));
  ASSERT_EQ(all.size(), 1u) << text_of(all);
  EXPECT_EQ(all[0].file, file.string());
}

// ---- the manifest

TEST_F(Damaged, AnotherContractVersion) {
  const Finding finding = after([](Json* manifest) { (*manifest)["contract"] = kContractVersion + 1; });
  EXPECT_EQ(value_of(finding, "recorded"), std::to_string(kContractVersion + 1));
  EXPECT_EQ(value_of(finding, "this_nibble"), std::to_string(kContractVersion));
  EXPECT_EQ(finding.file, (target() / "nibble.json").string());
}

TEST_F(Damaged, AnotherToolVersionComparesTensorsOnly) {
  write_atomically(target() / "config.json", std::string_view(read_text(target() / "config.json", 1 << 20) + " "));
  const Finding finding = after([](Json* manifest) { (*manifest)["nibble"] = "0.0.9"; });
  EXPECT_EQ(value_of(finding, "recorded"), "0.0.9");
  EXPECT_EQ(value_of(finding, "this_nibble"), kToolVersion);
  flip_tensor(target(), expert_ + "weight_packed", 3);
  EXPECT_EQ(rederive_findings(rederived()).size(), 2u);
}

TEST_F(Damaged, NoRecipeOrAMalformedOne) {
  const std::string original = read_text(target() / "nibble.json", UINT64_MAX);
  const std::function<void(Json*)> edits[] = {
      [](Json* manifest) { manifest->erase("recipe"); },
      [](Json* manifest) { (*manifest)["recipe"] = 7; },
      [](Json* manifest) { (*manifest)["recipe"]["format"] = "nvfp5"; },
      [](Json* manifest) { (*manifest)["recipe"]["keep"] = {"name:absent.*"}; },
      [](Json* manifest) { (*manifest)["recipe"]["include"] = {"no_role"}; },
      [](Json* manifest) { (*manifest)["recipe"]["generic"] = {"("}; },
      [](Json* manifest) { (*manifest)["recipe"].erase("shard_bytes"); },
  };
  for (const auto& edit : edits) {
    const Finding finding = after(edit);
    EXPECT_FALSE(finding.message.empty());
    write_atomically(target() / "nibble.json", std::string_view(original));
  }
  std::filesystem::remove(target() / "nibble.json");
  const Findings all = rederive_findings(rederived());
  ASSERT_EQ(all.size(), 1u) << text_of(all);
  EXPECT_NE(all[0].message.find("no manifest"), std::string::npos) << all[0].message;
}

TEST_F(Damaged, RowsOfTheManifest) {
  const std::string original = read_text(target() / "nibble.json", UINT64_MAX);
  const auto row = [](Json* manifest) -> Json& {
    for (Json& tensor : (*manifest)["tensors"]) {
      if (tensor["name"] == "model.layers.1.mlp.experts.2.up_proj.weight") return tensor;
    }
    throw Error("no row");
  };
  Finding finding = after([&](Json* manifest) { row(manifest)["rel_rmse"] = 0.01; });
  EXPECT_EQ(value_of(finding, "field"), "rel_rmse");
  EXPECT_EQ(value_of(finding, "recorded"), "0.01");
  write_atomically(target() / "nibble.json", std::string_view(original));

  const std::string zeros(32, '0');
  finding = after([&](Json* manifest) { row(manifest)["inputs_xxh3_128"].front() = zeros; });
  EXPECT_EQ(value_of(finding, "recorded"), zeros);
  write_atomically(target() / "nibble.json", std::string_view(original));

  finding = after([&](Json* manifest) { row(manifest).erase("inputs_xxh3_128"); });
  EXPECT_EQ(value_of(finding, "recorded"), "none");
  write_atomically(target() / "nibble.json", std::string_view(original));

  finding = after([](Json* manifest) { (*manifest)["tensors"].erase(3); });
  EXPECT_EQ(value_of(finding, "tensors"), "1");
}

// ----

TEST_F(Damaged, AnyNumberOfThreadsFindsTheSame) {
  flip_tensor(target(), expert_ + "weight_packed", 9);
  flip_tensor(target(), "model.layers.0.mlp.experts.0.down_proj.weight_scale", 0);
  flip_tensor(base(), "model.layers.0.mlp.experts.1.gate_proj.weight", 100);
  flip_tensor(target(), "lm_head.weight", 77);
  edit_manifest([](Json* manifest) { (*manifest)["tensors"].erase(5); });
  const VerifyReport one = rederived(1);
  const std::string expected = text_of(rederive_findings(one));
  EXPECT_GE(rederive_findings(one).size(), 4u) << expected;
  for (const int threads : {2, 3, 8}) {
    const VerifyReport many = rederived(threads);
    EXPECT_EQ(text_of(rederive_findings(many)), expected) << threads;
    ASSERT_TRUE(many.rederived.has_value());
    EXPECT_EQ(many.rederived->tensors, one.rederived->tensors);
    EXPECT_EQ(many.rederived->bytes, one.rederived->bytes);
    EXPECT_EQ(many.rederived->differing, one.rederived->differing);
    EXPECT_EQ(many.rederived->differing_bytes, one.rederived->differing_bytes);
  }
}

}  // namespace
}  // namespace nibble
