// What the field's libraries read from and write into the tiny checkpoints, as digests (tests/golden/field.json, made
// by tools/make_field_goldens.py): nibble must decode and encode the same bytes. Where a digest differs,
// tools/check_field.sh says in which tensor.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "nibble/base/hash.h"
#include "nibble/base/json.h"
#include "nibble/base/log.h"
#include "nibble/checkpoint/checkpoint.h"
#include "nibble/quantize/quantize.h"
#include "nibble/testing/temp_dir.h"

namespace nibble {
namespace {

const Json& golden() {
  static const Json json = read_json(testing::golden_dir() / "field.json");
  return json;
}

// Decoders differ in the sign of zero.
template <typename Bits>
void make_zeros_positive(std::vector<std::byte>* bytes) {
  constexpr Bits kNegativeZero = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
  for (size_t at = 0; at + sizeof(Bits) <= bytes->size(); at += sizeof(Bits)) {
    Bits value;
    std::memcpy(&value, bytes->data() + at, sizeof(Bits));
    if (value == kNegativeZero) std::memset(bytes->data() + at, 0, sizeof(Bits));
  }
}

// As make_field_goldens.py computes it.
std::string digest(const Checkpoint& checkpoint, const std::function<bool(const StoredTensor&)>& wanted,
                   bool positive_zeros) {
  std::vector<const StoredTensor*> tensors;
  for (const StoredTensor& tensor : checkpoint.tensors())
    if (wanted(tensor)) tensors.push_back(&tensor);
  std::sort(tensors.begin(), tensors.end(), [](const auto* a, const auto* b) { return a->name < b->name; });
  Sha256 whole;
  for (const StoredTensor* tensor : tensors) {
    const std::string head =
        fmt::format("{} {} [{}]\n", tensor->name, dtype_name(tensor->dtype), fmt::join(tensor->shape, ","));
    whole.update(std::as_bytes(std::span(head)));
    std::vector<std::byte> bytes = checkpoint.read_all(*tensor);
    if (positive_zeros && tensor->dtype == Dtype::kBF16) make_zeros_positive<uint16_t>(&bytes);
    if (positive_zeros && tensor->dtype == Dtype::kF32) make_zeros_positive<uint32_t>(&bytes);
    whole.update(bytes);
  }
  return whole.hex();
}

std::string digest(const Path& folder, bool positive_zeros) {
  return digest(Checkpoint::open(folder), [](const StoredTensor&) { return true; }, positive_zeros);
}

QuantizeRequest request_for(const Json& row, const std::string& format, const Path& target) {
  QuantizeRequest request;
  request.source = testing::golden_dir() / "models" / row.at("source").get<std::string>();
  request.target = target;
  request.format = parse_writable_format(format);
  request.quiet = true;
  return request;
}

TEST(FieldGolden, WhatLibrariesWroteIsDecodedAsTheyDo) {
  log::set_level(log::Level::kOff);
  ASSERT_GE(golden().at("read").size(), 9u);
  for (const Json& row : golden().at("read")) {
    SCOPED_TRACE(row.at("source").get<std::string>());
    const testing::TempDir dir;
    QuantizeRequest request = request_for(row, "bf16", dir / "target");
    if (const std::string pattern = row.at("generic"); !pattern.empty()) request.generic = {pattern};
    const QuantizeResult result = quantize(request);
    EXPECT_EQ(result.tensors.size(), row.at("tensors").get<size_t>());
    EXPECT_EQ(digest(dir / "target", true), row.at("sha256").get<std::string>());
  }
}

// Its experts are smaller than a block: one scale each, which must not be taken for that of a whole tensor.
TEST(FieldGolden, WhatIsInTheTargetFormatKeepsItsBytes) {
  log::set_level(log::Level::kOff);
  for (const char* rule : {"", "fp8.amax", "fp8.ue8m0"}) {
    const testing::TempDir dir;
    QuantizeRequest request = request_for(Json{{"source", "deepseek_v3_fp8"}}, "fp8-block", dir / "target");
    request.rule_given = *rule != '\0';
    request.rule = request.rule_given ? parse_rule(rule, request.format) : default_rule(request.format);
    for (const QuantizeRow& row : quantize(request).tensors) {
      if (row.role != "routed_expert") continue;
      EXPECT_EQ(row.action, "recast") << row.name << ": " << row.reason;
    }
    EXPECT_EQ(digest(dir / "target", false), digest(testing::golden_dir() / "models/deepseek_v3_fp8", false)) << rule;
  }
}

// FP8 attention and MLPs of the source, kept as they are, are in the target's scheme: an engine must look for scales.
TEST(FieldGolden, KeptWeightsOfTheSameSchemeAreNotListedAsUnquantized) {
  log::set_level(log::Level::kOff);
  const testing::TempDir dir;
  QuantizeRequest request = request_for(Json{{"source", "deepseek_v3_fp8"}}, "fp8-block", dir / "target");
  request.rule = default_rule(request.format);
  quantize(request);
  const Json config = read_json(dir / "target" / "config.json").at("quantization_config");
  for (const Json& module : config.value("modules_to_not_convert", Json::array()))
    EXPECT_EQ(module.get<std::string>().find("_proj"), std::string::npos) << module;
}

// One configuration describes one scheme: INT4 experts cannot stay beside attention in another one.
TEST(FieldGolden, KeptWeightsOfAnotherSchemeAreDecoded) {
  log::set_level(log::Level::kOff);
  const testing::TempDir dir;
  QuantizeRequest request = request_for(Json{{"source", "qwen3_moe_int4"}}, "mxfp8", dir / "target");
  request.rule = default_rule(request.format);
  request.include = {"attention"};
  uint64_t experts = 0;
  for (const QuantizeRow& row : quantize(request).tensors) {
    if (row.role != "routed_expert") continue;
    ++experts;
    EXPECT_EQ(row.format, "bf16") << row.name;
    EXPECT_NE(row.reason.find("one output holds one scheme"), std::string::npos) << row.reason;
  }
  EXPECT_EQ(experts, 24u);
  const Checkpoint target = Checkpoint::open(dir / "target");
  EXPECT_GE(target.find("model.layers.0.mlp.experts.0.gate_proj.weight"), 0);
  EXPECT_EQ(target.find("model.layers.0.mlp.experts.0.gate_proj.weight_packed"), -1);
}

TEST(FieldGolden, TheBytesOfALibraryAreReproduced) {
  log::set_level(log::Level::kOff);
  ASSERT_GE(golden().at("write").size(), 50u);
  for (const Json& row : golden().at("write")) {
    const std::string format = row.at("format");
    const std::string library = row.at("library");
    SCOPED_TRACE(fmt::format("{} {} as {}", row.at("source").get<std::string>(), format, library));
    const testing::TempDir dir;
    QuantizeRequest request = request_for(row, format, dir / "target");
    request.bit_exact =
        library == library_name(BitExact::kModelOpt) ? BitExact::kModelOpt : BitExact::kCompressedTensors;
    request.rule = parse_rule(bit_exact_rule(request.bit_exact, request.format), request.format);
    request.layout = row.at("layout").get<std::string>();
    quantize(request);
    EXPECT_EQ(Checkpoint::open(dir / "target").tensors().size(), row.at("tensors").get<size_t>());
    EXPECT_EQ(digest(dir / "target", false), row.at("sha256").get<std::string>());
  }
}

// NAME, or a prefix that ends in a star.
bool excluded(const Json& patterns, const std::string& module) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const Json& entry) {
    const auto pattern = entry.get<std::string>();
    if (!pattern.ends_with('*')) return module == pattern;
    return module.starts_with(std::string_view(pattern).substr(0, pattern.size() - 1));
  });
}

// "M" of "M.weight_scale", "M" of "M_weight_scale", nothing of other names.
std::string scaled_by(const std::string& name) {
  for (const std::string_view tail : {".weight_scale", "_weight_scale"}) {
    if (name.ends_with(tail)) return name.substr(0, name.size() - tail.size());
  }
  return "";
}

// The library gathers the modules left out under prefixes where it can ("model.layers.0.self_attn*"), nibble names
// each: both lists must mean the same modules of this checkpoint.
void expect_same_modules(const Checkpoint& checkpoint, const Json& ours, const Json& theirs) {
  std::set<std::string> quantized;
  std::set<std::string> kept;
  for (const Json& module : ours) kept.insert(module.get<std::string>());
  for (const StoredTensor& tensor : checkpoint.tensors())
    if (const std::string module = scaled_by(tensor.name); !module.empty()) quantized.insert(module);
  EXPECT_FALSE(quantized.empty());
  for (const std::string& module : quantized) {
    EXPECT_FALSE(excluded(theirs, module)) << module;
    EXPECT_FALSE(excluded(ours, module)) << module;
  }
  for (const std::string& module : kept) EXPECT_TRUE(excluded(theirs, module)) << module;
  for (const Json& pattern : theirs) {
    const bool used = std::any_of(kept.begin(), kept.end(),
                                  [&](const std::string& module) { return excluded(Json::array({pattern}), module); });
    EXPECT_TRUE(used) << pattern;
  }
}

// What ModelOpt's export_hf_checkpoint writes (tests/golden/modelopt_export.json, made by
// tools/make_modelopt_golden.py): both configurations, the names of all tensors, the bytes of the quantized modules.
void expect_exported(const Json& row, const Path& folder) {
  const Checkpoint target = Checkpoint::open(folder);
  Json settings = read_json(folder / "config.json").at("quantization_config");
  Json expected = row.at("quantization_config");
  expect_same_modules(target, settings.at("ignore"), expected.at("ignore"));
  settings["ignore"] = expected["ignore"] = Json::array();
  EXPECT_EQ(settings, expected);

  Json side = read_json(folder / "hf_quant_config.json");
  Json expected_side = row.at("hf_quant_config");
  Json& listed = side["quantization"]["exclude_modules"];
  Json& expected_list = expected_side["quantization"]["exclude_modules"];
  expect_same_modules(target, listed, expected_list);
  listed = expected_list = Json::array();
  EXPECT_EQ(side, expected_side);

  std::vector<std::string> names;
  for (const StoredTensor& tensor : target.tensors()) names.push_back(tensor.name);
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, row.at("names").get<std::vector<std::string>>());
  std::set<std::string> modules;
  for (const std::string& name : names) modules.insert(scaled_by(name));
  modules.erase("");
  const auto quantized = [&](const StoredTensor& tensor) {
    const std::string& name = tensor.name;
    for (const std::string_view tail : {"_weight_scale_2", "_weight_scale", ""}) {
      if (name.ends_with(tail) && modules.contains(name.substr(0, name.size() - tail.size()))) return true;
    }
    return modules.contains(name.substr(0, name.rfind('.')));
  };
  EXPECT_EQ(digest(target, quantized, false), row.at("sha256").get<std::string>());
}

TEST(FieldGolden, ModeloptsOwnExportIsReproduced) {
  log::set_level(log::Level::kOff);
  const Json exported = read_json(testing::golden_dir() / "modelopt_export.json");
  EXPECT_EQ(exported.at("families").size(), 7u);
  for (const auto& [family, row] : exported.at("families").items()) {
    SCOPED_TRACE(family);
    const testing::TempDir dir;
    QuantizeRequest request = request_for(Json{{"source", family}}, "nvfp4", dir / "target");
    request.bit_exact = BitExact::kModelOpt;
    request.rule = parse_rule(bit_exact_rule(request.bit_exact, request.format), request.format);
    request.layout = "modelopt";
    quantize(request);
    expect_exported(row, dir / "target");
  }
}

}  // namespace
}  // namespace nibble
