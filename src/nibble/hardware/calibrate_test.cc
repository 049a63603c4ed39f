#include "nibble/hardware/calibrate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "nibble/hardware/disk_folder_test.h"
#include "nibble/testing/thrown_error.h"

namespace nibble {
namespace {

using ::testing::Contains;
using testing::DiskFolder;
using ::testing::HasSubstr;
using testing::thrown_error;

CalibrateOptions tiny(const Path& folder) { return {0.05, uint64_t{8} << 20, folder, 2}; }

TEST(Calibrate, MeasuresThisMachine) {
  const DiskFolder folder;
  std::vector<std::string> told;
  const Device device = calibrate(tiny(folder.path()), [&](std::string_view text) { told.emplace_back(text); });
  EXPECT_EQ(device.kind, DeviceKind::kCpu);
  EXPECT_GT(device.memory_bytes, uint64_t{100} << 20);
  ASSERT_TRUE(device.measured_read && device.measured_f32);
  for (const auto& [peak, range] : {std::pair{device.memory_bandwidth, device.measured_read},
                                    {device.f32_flops, device.measured_f32},
                                    {device.bf16_flops, device.measured_bf16},
                                    {device.int8_flops, device.measured_int8}}) {
    EXPECT_EQ(peak, range ? range->high : 0);
    if (range) {
      EXPECT_GT(range->low, 0);
      EXPECT_LE(range->low, range->high);
    }
  }
  if (device.measured_disk_read) {
    EXPECT_GT(device.measured_disk_read->low, 0);
  } else {
    EXPECT_THAT(device.notes, Contains(HasSubstr("lies in memory")));
  }
  EXPECT_TRUE(folder.empty());
  EXPECT_GE(told.size(), 3u);
  EXPECT_THAT(device.sources.at("measured_read"), HasSubstr("2 threads"));
}

TEST(Calibrate, RoundTripsThroughItsFile) {
  const Device device = calibrate(tiny(""), nullptr);
  EXPECT_THAT(device.notes, Contains(HasSubstr("no folder was given")));
  const Json json = parse_json(json_text(device_json(device)), "calibrated");
  EXPECT_EQ(parse_device(json, "calibrated"), device);
  for (const auto& [key, value] : json.items()) {
    if (value.is_object()) {
      EXPECT_NE(value["source"], "not stated") << key;
    }
  }
}

TEST(Calibrate, OptionsOutOfRange) {
  const auto message = [](const CalibrateOptions& options) {
    return thrown_error([&] { calibrate(options, nullptr); }).message();
  };
  EXPECT_EQ(message({.seconds = 0}), "the time for measuring is out of range");
  EXPECT_EQ(message({.seconds = std::numeric_limits<double>::quiet_NaN()}), "the time for measuring is out of range");
  EXPECT_EQ(message({.seconds = 1e9}), "the time for measuring is out of range");
  EXPECT_EQ(message({.threads = -1}), "the number of threads is out of range");
  EXPECT_EQ(message({.max_bytes = 1000}), "too little memory to measure with");
}

}  // namespace
}  // namespace nibble
