#include "nibble/hardware/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "nibble/base/file.h"
#include "nibble/testing/thrown_error.h"

namespace nibble {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using testing::thrown_error;
using testing::value_of;

Path catalog() { return Path(NIBBLE_SOURCE_DIR) / "data" / "hardware"; }
Json file_of(const std::string& name) { return read_json(catalog() / (name + ".json")); }

TEST(Devices, H200) {
  const Device& h200 = find_device("h200");
  EXPECT_EQ(h200.memory_bytes, 141'000'000'000u);
  EXPECT_EQ(h200.memory_bandwidth, 4.8e12);
  EXPECT_EQ(h200.bf16_flops, 989.4e12);
  EXPECT_EQ(h200.e4m3_flops, 1978.9e12);
  EXPECT_EQ(h200.e2m1_flops, 0);
  EXPECT_EQ(h200.link_bandwidth, 450e9);
  EXPECT_EQ(h200.link_domain, 8u);
  EXPECT_EQ(h200.nic_bandwidth, 50e9);
  EXPECT_EQ(h200.measured_read, (MeasuredRange{4.45e12, 4.6e12}));
  EXPECT_EQ(h200.measured_bf16, (MeasuredRange{819e12, 819e12}));
  EXPECT_EQ(h200.measured_e4m3, (MeasuredRange{1450e12, 1500e12}));
  EXPECT_EQ(h200.measured_disk_read, std::nullopt);
  EXPECT_THAT(h200.sources.at("memory_bytes"), HasSubstr("H200"));
}

TEST(Devices, B200) {
  const Device& b200 = find_device("b200");
  EXPECT_EQ(b200.memory_bytes, 180'000'000'000u);
  EXPECT_EQ(b200.memory_bandwidth, 7.7e12);
  EXPECT_EQ(b200.bf16_flops, 2250e12);
  EXPECT_EQ(b200.e4m3_flops, 4500e12);
  EXPECT_EQ(b200.e2m1_flops, 9000e12);
  EXPECT_EQ(b200.link_bandwidth, 900e9);
  EXPECT_EQ(b200.measured_read, std::nullopt);
}

TEST(Devices, Processors) {
  EXPECT_EQ(find_device("epyc9654").kind, DeviceKind::kCpu);
  EXPECT_EQ(find_device("epyc9654").memory_bandwidth, 12 * 4800e6 * 8);
  EXPECT_EQ(find_device("xeon6980p").memory_bandwidth, 12 * 8800e6 * 8);
  EXPECT_DOUBLE_EQ(find_device("xeon8480").bf16_flops, 56 * 2.0e9 * 2048);
}

TEST(Devices, AllAreThereAndSorted) {
  const std::vector<std::string> names{"a100",   "b200",      "b300",    "epyc9654", "epyc9755",   "gb10",
                                       "gb200",  "h100",      "h20",     "h200",     "l40s",       "mi300x",
                                       "mi355x", "rtx3090",   "rtx4090", "rtx5090",  "rtxpro6000", "ryzen9950x",
                                       "t4",     "xeon6980p", "xeon8480"};
  std::vector<std::string> found;
  for (const Device& device : devices()) found.push_back(device.name);
  EXPECT_EQ(found, names);
}

// Form, name, sources; and that reading and writing lose nothing.
TEST(Devices, FilesAreWhatTheProgramHas) {
  size_t files = 0;
  for (const Path& path : list_files(catalog())) {
    if (path.extension() != ".json") continue;
    SCOPED_TRACE(path.string());
    ++files;
    const Json json = read_json(path);
    const Device device = parse_device(json, path.string());
    EXPECT_EQ(device.name, path.stem().string());
    EXPECT_EQ(device, find_device(device.name));
    EXPECT_EQ(device_json(device), json);
    EXPECT_EQ(parse_device(device_json(device), "again"), device);
    size_t figures = 0;
    for (const auto& [key, value] : json.items()) {
      if (!value.is_object()) continue;
      ++figures;
      EXPECT_GE(device.sources.at(key).size(), 8u) << key;
    }
    EXPECT_EQ(figures, device.sources.size());
  }
  EXPECT_EQ(files, devices().size());
}

// What units of one kind of device have in common: a slip of a digit or a figure with sparsity stands out.
TEST(Devices, FiguresAreConsistent) {
  for (const Device& device : devices()) {
    SCOPED_TRACE(device.name);
    const auto is_double_or_none = [](double wide, double narrow) {
      return narrow == 0 || (narrow > 1.9 * wide && narrow < 4.1 * wide);
    };
    EXPECT_TRUE(is_double_or_none(device.bf16_flops, device.e4m3_flops));
    EXPECT_TRUE(is_double_or_none(device.e4m3_flops, device.e2m1_flops));
    EXPECT_GT(device.bf16_flops, device.f32_flops);
    // Floating-point operations that a byte from memory must feed.
    const double balance = device.bf16_flops / device.memory_bandwidth;
    EXPECT_GT(balance, 20);
    EXPECT_LT(balance, 1000);
    for (const auto& [measured, peak] : {std::pair{device.measured_read, device.memory_bandwidth},
                                         {device.measured_bf16, device.bf16_flops},
                                         {device.measured_e4m3, device.e4m3_flops}}) {
      if (measured) {
        EXPECT_LE(measured->high, peak);
      }
    }
  }
}

TEST(FindDevice, SpellingsAndAliases) {
  for (const char* name : {"h200", "H200", "NVIDIA H200", "nvidia-h200", "NVIDIA H200 SXM", "h_200", "H200 141GB"})
    EXPECT_EQ(find_device(name).name, "h200") << name;
  const std::map<std::string, std::string> others{{"NVIDIA GeForce RTX 4090", "rtx4090"},
                                                  {"rtx-4090", "rtx4090"},
                                                  {"Tesla T4", "t4"},
                                                  {"NVIDIA A100-SXM4-80GB", "a100"},
                                                  {"NVIDIA H100 80GB HBM3", "h100"},
                                                  {"AMD Instinct MI300X OAM", "mi300x"},
                                                  {"RTX PRO 6000", "rtxpro6000"},
                                                  {"Intel(R) Xeon(R) Platinum 8480+", "xeon8480"},
                                                  {"Intel(R) Xeon(R) 6980P", "xeon6980p"},
                                                  {"AMD Ryzen 9 9950X 16-Core Processor", "ryzen9950x"},
                                                  {"AMD EPYC 9654 96-Core Processor", "epyc9654"},
                                                  {"DGX Spark", "gb10"},
                                                  {"GB200 NVL72", "gb200"}};
  for (const auto& [name, device] : others) EXPECT_EQ(find_device(name).name, device) << name;
}

TEST(FindDevice, EveryNameLeadsToItsDevice) {
  for (const Device& device : devices()) {
    EXPECT_EQ(find_device(device.name).name, device.name);
    EXPECT_EQ(find_device(device.title).name, device.name);
    for (const std::string& alias : device.aliases) EXPECT_EQ(find_device(alias).name, device.name) << alias;
  }
}

TEST(FindDevice, UnknownNames) {
  const Error error = thrown_error([] { find_device("NVIDIA H2000"); });
  EXPECT_EQ(error.message(), "unknown device");
  EXPECT_EQ(value_of(error, "device"), "NVIDIA H2000");
  EXPECT_THAT(error.ways_out()[0], "did you mean h200?");
  EXPECT_THAT(error.ways_out()[1], MatchesRegex("use one of a100 b200 .* xeon8480"));
  EXPECT_THAT(thrown_error([] { find_device("rtx4080"); }).ways_out()[0], "did you mean rtx4090?");
  for (const char* name : {"", " ", "nvidia", "completely different"})
    EXPECT_THAT(thrown_error([&] { find_device(name); }).ways_out()[0], HasSubstr("use one of")) << name;
}

// The message of the refusal of h200.json after `change`.
template <typename Change>
Error refusal(const Change& change) {
  Json json = file_of("h200");
  change(json);
  return thrown_error([&] { parse_device(json, "my.json"); });
}

TEST(ParseDevice, MissingAndUnknownKeys) {
  const Json whole = file_of("h200");
  for (const auto& [key, value] : whole.items()) {
    if (key == "notes" || key == "aliases" || key.starts_with("measured")) continue;
    const Error error = refusal([&](Json& json) { json.erase(key); });
    EXPECT_EQ(error.message(), "the description of a device lacks `" + key + "`");
    EXPECT_EQ(error.file(), "my.json");
    EXPECT_FALSE(error.ways_out().empty());
  }
  const Error unknown = refusal([](Json& json) { json["memory_bandwith"] = json["memory_bandwidth"]; });
  EXPECT_EQ(value_of(unknown, "key"), "memory_bandwith");
  EXPECT_EQ(value_of(refusal([](Json& json) { json["f32_flops"]["unit"] = "T"; }), "key"), "unit");
  EXPECT_EQ(refusal([](Json& json) { json["bf16_flops"].erase("source"); }).message(),
            "the description of a device lacks `bf16_flops.source`");
  EXPECT_EQ(refusal([](Json& json) { json["bf16_flops"]["source"] = ""; }).message(), "`bf16_flops` has no source");
  EXPECT_EQ(refusal([](Json& json) { json["measured_read"].erase("high"); }).message(),
            "the description of a device lacks `measured_read.high`");
  EXPECT_EQ(refusal([](Json& json) { json["name"] = ""; }).message(), "`name` is empty");
}

TEST(ParseDevice, WrongTypes) {
  EXPECT_THAT(refusal([](Json& json) { json = Json::array(); }).message(), HasSubstr("should be a JSON object"));
  EXPECT_THAT(refusal([](Json& json) { json["memory_bandwidth"] = 4.8e12; }).message(),
              "`memory_bandwidth` should be an object with `value` and `source`");
  EXPECT_THAT(refusal([](Json& json) { json["memory_bytes"]["value"] = "141 GB"; }).message(),
              "`memory_bytes.value` should be a finite number");
  EXPECT_THAT(refusal([](Json& json) { json["memory_bytes"]["value"] = 141e9 + 0.5; }).message(),
              "`memory_bytes.value` should be a whole number");
  EXPECT_THAT(refusal([](Json& json) { json["kind"] = "tpu"; }).message(), "`kind` should be gpu or cpu");
  EXPECT_THAT(refusal([](Json& json) { json["notes"] = "one"; }).message(), "`notes` should be a list of texts");
  EXPECT_THAT(refusal([](Json& json) { json["aliases"] = {1}; }).message(), "`aliases` should be a list of texts");
}

TEST(ParseDevice, NumbersOutOfRange) {
  const auto message = [](const char* key, const Json& value) {
    return refusal([&](Json& json) { json[key]["value"] = value; }).message();
  };
  EXPECT_EQ(message("memory_bytes", 0), "`memory_bytes.value` is out of range");
  EXPECT_EQ(message("memory_bytes", 141), "`memory_bytes.value` is out of range");  // gigabytes
  EXPECT_EQ(message("memory_bytes", -1), "`memory_bytes.value` is out of range");
  EXPECT_EQ(message("memory_bandwidth", 0), "`memory_bandwidth.value` is out of range");
  EXPECT_EQ(message("memory_bandwidth", 1e300), "`memory_bandwidth.value` is out of range");
  EXPECT_EQ(message("bf16_flops", -989e12), "`bf16_flops.value` is out of range");
  EXPECT_EQ(message("bf16_flops", 989.4), "`bf16_flops.value` is out of range");  // teraflops
  EXPECT_EQ(message("link_latency", 2), "`link_latency.value` is out of range");  // microseconds
  EXPECT_EQ(message("link_domain", 0), "`link_domain.value` is out of range");
  EXPECT_EQ(message("link_bandwidth", 0), "a domain of several devices needs `link_bandwidth`");
  const Error nan = thrown_error([] {
    Json json = file_of("h200");
    json["f32_flops"]["value"] = parse_json("NaN", "number");
    parse_device(json, "my.json");
  });
  EXPECT_EQ(nan.message(), "`f32_flops.value` should be a finite number");
  const Error error = refusal([](Json& json) { json["bf16_flops"]["value"] = 989.4; });
  EXPECT_EQ(value_of(error, "value"), "989.4");
  EXPECT_EQ(value_of(error, "least"), "1000000000");
  EXPECT_EQ(refusal([](Json& json) { json["measured_read"]["low"] = 5e12; }).message(),
            "`measured_read` ends below its beginning");
  EXPECT_EQ(refusal([](Json& json) { json["measured_bf16"]["low"] = 0; }).message(),
            "`measured_bf16.low` is out of range");
}

TEST(ParseDevice, MeasuredAbovePossible) {
  EXPECT_EQ(refusal([](Json& json) { json["memory_bandwidth"]["value"] = 4.5e12; }).message(),
            "`measured_read` is above `memory_bandwidth`");
}

TEST(ParseDevice, RowsOfMeasuredExperts) {
  const auto refused = [](const Json& row) {
    return refusal([&](Json& json) { json["measured_experts"]["shares"].push_back(row); }).message();
  };
  EXPECT_THAT(refused({"w4a17", 1, 0.5, 0.6}), HasSubstr("an entry of `measured_experts`"));
  EXPECT_THAT(refused({"w16a16", 16384, 0.5, 0.6}), HasSubstr("rows of a scheme together"));  // after other schemes
  EXPECT_THAT(refused({"w8a8", 1, 0.5, 1.1}), HasSubstr("up to 1"));
}

TEST(ParseDevice, DomainsThatSpanMachines) {
  EXPECT_FALSE(find_device("h200").link_spans_machines);
  const Device& gb200 = find_device("gb200");
  EXPECT_TRUE(gb200.link_spans_machines);
  EXPECT_EQ(parse_device(device_json(gb200), "again"), gb200);
  EXPECT_EQ(refusal([](Json& json) { json["link_spans_machines"] = {{"value", 1}, {"source", "me"}}; }).message(),
            "`link_spans_machines.value` should be true or false");
  EXPECT_EQ(refusal([](Json& json) { json["link_spans_machines"] = {{"value", true}}; }).message(),
            "the description of a device lacks `link_spans_machines.source`");
}

TEST(Devices, LinksEndWithTheDomainOrTheMachine) {
  EXPECT_EQ(find_device("h200").linked(8), 8U);
  EXPECT_EQ(find_device("h200").linked(4), 4U);
  EXPECT_EQ(find_device("h200").linked(16), 8U);
  EXPECT_EQ(find_device("gb200").linked(4), 72U);
  EXPECT_EQ(find_device("rtx4090").linked(8), 8U);
  EXPECT_EQ(find_device("gb10").linked(8), 1U);
}

TEST(DeviceJson, FiguresWithoutASource) {
  Device device = find_device("t4");
  device.sources.erase("int8_flops");
  EXPECT_EQ(parse_device(device_json(device), "again").sources.at("int8_flops"), "not stated");
}

}  // namespace
}  // namespace nibble
