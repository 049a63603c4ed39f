#include "nibble/hardware/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "nibble/base/error.h"
#include "nibble/base/parallel.h"
#include "nibble/base/strings.h"
#include "nibble/hardware/disk_probe.h"
#include "nibble/hardware/machine_info.h"
#include "nibble/hardware/memory_probe.h"
#include "nibble/hardware/probes.h"
#include "nibble/hardware/rate.h"

namespace nibble {
namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 30;
constexpr int kPasses = 4;
// Shares of the time.
constexpr double kMemoryShare = 0.4;
constexpr double kArithmeticShare = 0.25;
constexpr double kDiskShare = 0.35;

void check(const CalibrateOptions& options) {
  constexpr double kLongest = 3600;
  constexpr int kMostThreads = 4096;
  const bool in_range = options.seconds > 0 && options.seconds <= kLongest;  // NaN is not
  if (!in_range)
    throw Error("the time for measuring is out of range")
        .value("seconds", options.seconds)
        .value("most", kLongest)
        .way_out("10 seconds are enough for most machines");
  if (options.threads < 0 || options.threads > kMostThreads)
    throw Error("the number of threads is out of range")
        .value("threads", options.threads)
        .value("most", kMostThreads)
        .way_out("0 takes all processors that this process may use");
  if (options.max_bytes < kProbePage)
    throw Error("too little memory to measure with")
        .value("max_bytes", options.max_bytes)
        .value("least", kProbePage)
        .way_out("allow more than the processor's caches hold, 1 GiB if there is as much");
}

// "Intel(R) Xeon(R) Platinum 8480+" -> "intel-xeon-platinum-8480".
std::string file_name_of(std::string title) {
  std::string name;
  for (const std::string_view mark : {"(R)", "(TM)", "(r)", "(tm)"}) {
    for (size_t at = title.find(mark); at != std::string::npos; at = title.find(mark))
      title.replace(at, mark.size(), " ");
  }
  for (const char c : title) {
    const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if ((lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9')) {
      name += lower;
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  while (!name.empty() && name.back() == '-') name.pop_back();
  return name.empty() ? "this-machine" : name;
}

void measure_memory(Device& device, const Probes& probes, uint64_t most, uint64_t least, double seconds, int threads) {
  const MemoryRate rate = memory_read_rate(probes, most, seconds, threads, least);
  device.measured_read = rate.read;
  device.memory_bandwidth = rate.read.high;
  device.sources["measured_read"] = rate.how;
  constexpr uint64_t kCacheLike = uint64_t{512} << 20;
  if (rate.bytes < kCacheLike)
    device.notes.push_back(
        fmt::format("Only {} were read: on a processor with large caches they may have answered instead of the memory.",
                    human_bytes(rate.bytes)));
}

struct Arithmetic {
  const char *peak_key, *measured_key;
  double Device::* peak;
  std::optional<MeasuredRange> Device::* measured;
  const ArithmeticProbe* probe;
};

void measure_arithmetic(Device& device, const Arithmetic& kind, double seconds, int threads) {
  if (kind.probe->run == nullptr) {
    device.sources[kind.peak_key] = "no instruction for it in the processor's vector units";
    return;
  }
  struct alignas(64) State {
    std::array<std::byte, kProbeStateBytes> bytes;
  };
  std::vector<State> states(static_cast<size_t>(threads));
  for (State& state : states) {
    for (size_t i = 0; i < kProbeStateBytes / sizeof(float); ++i) {
      const float number = 1 + static_cast<float>(i);
      std::memcpy(state.bytes.data() + i * sizeof(float), &number, sizeof(float));
    }
  }
  constexpr uint64_t kSteps = 2000;  // some microseconds
  const MeasuredRange range = rates_of(kPasses, threads, seconds / kPasses, [&](int thread) {
    kind.probe->run(kSteps, states[static_cast<size_t>(thread)].bytes.data());
    return kind.probe->operations * static_cast<double>(kSteps);
  });
  device.*kind.measured = range;
  device.*kind.peak = range.high;
  device.sources[kind.measured_key] =
      fmt::format("{} in registers by {} threads, {} passes; matrix units such as AMX are not measured",
                  kind.probe->what, threads, kPasses);
}

// Peaks and what cannot be measured on one machine alone.
void state_the_rest(Device& device) {
  const std::string highest = "the highest of ";
  device.sources["memory_bytes"] = "what the operating system says";
  device.sources["memory_bandwidth"] = highest + "measured_read";
  if (device.measured_f32) device.sources["f32_flops"] = highest + "measured_f32";
  if (device.measured_bf16) device.sources["bf16_flops"] = highest + "measured_bf16";
  if (device.measured_int8) device.sources["int8_flops"] = highest + "measured_int8";
  for (const char* key : {"e4m3_flops", "e2m1_flops"}) device.sources[key] = "no unit for it";
  for (const char* key : {"link_bandwidth", "link_latency", "nic_bandwidth", "nic_latency"})
    device.sources[key] = "not measured";
  device.sources["link_domain"] = "one machine";
}

}  // namespace

Device calibrate(const CalibrateOptions& options, const std::function<void(std::string_view)>& progress) {
  check(options);
  const auto tell = [&](std::string_view text) {
    if (progress) progress(text);
  };
  const int threads = options.threads == 0 ? default_threads() : options.threads;
  const MachineInfo machine = machine_info();
  const uint64_t most =
      std::min({options.max_bytes, kMostBytes, machine.available_bytes / 4}) / kProbePage * kProbePage;
  if (most == 0)
    throw Error("too little free memory to measure with")
        .value("available_bytes", machine.available_bytes)
        .way_out("end other programs");
  const Probes all = probes();
  Device device;
  device.title = machine.processor;
  device.name = file_name_of(machine.processor);
  device.kind = DeviceKind::kCpu;
  device.memory_bytes = machine.memory_bytes;
  device.architecture = std::string(isa_name(all.isa));
  if (all.bf16.run != nullptr) device.architecture += " bf16";
  if (all.int8.run != nullptr) device.architecture += " vnni";
  tell(fmt::format("memory: up to {} read by {} threads", human_bytes(most), threads));
  measure_memory(device, all, most, bytes_beyond_caches(), options.seconds * kMemoryShare, threads);
  const std::array<Arithmetic, 3> kinds{
      {{"f32_flops", "measured_f32", &Device::f32_flops, &Device::measured_f32, &all.f32},
       {"bf16_flops", "measured_bf16", &Device::bf16_flops, &Device::measured_bf16, &all.bf16},
       {"int8_flops", "measured_int8", &Device::int8_flops, &Device::measured_int8, &all.int8}}};
  for (const Arithmetic& kind : kinds) {
    if (kind.probe->run != nullptr) tell(fmt::format("arithmetic: {}", kind.probe->what));
    measure_arithmetic(device, kind, options.seconds * kArithmeticShare / kinds.size(), threads);
  }
  if (options.folder.empty()) {
    device.notes.emplace_back("The disk was not measured: no folder was given.");
  } else {
    tell(fmt::format("disk: a file in {}", options.folder.string()));
    const DiskRate disk = disk_read_rate(options.folder, most, options.seconds * kDiskShare, threads);
    device.measured_disk_read = disk.read;
    if (disk.read) device.sources["measured_disk_read"] = disk.how;
    if (!disk.read) device.notes.push_back(fmt::format("The disk was not measured: {}.", disk.how));
  }
  state_the_rest(device);
  return device;
}

}  // namespace nibble
