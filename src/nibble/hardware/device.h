// What a processor can do at most, as data: one file each in data/hardware, with the source of every figure in it.
// `nibble bench --calibrate` writes a file of the same form for the machine it runs on.
//
// Bytes, bytes a second, floating-point operations a second (a multiply-add is two). Peaks are of dense matrices (no
// structured sparsity) with float32 accumulation; 0: the processor has no such unit. Links are one direction, one
// device.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nibble/base/json.h"

namespace nibble {

enum class DeviceKind : uint8_t { kGpu, kCpu };

// Lowest and highest of repeated measurements.
struct MeasuredRange {
  double low = 0, high = 0;
  friend bool operator==(const MeasuredRange&, const MeasuredRange&) = default;
};

struct Device {
  std::string name;   // "h200": what the command line takes
  std::string title;  // "NVIDIA H200 SXM"
  DeviceKind kind = DeviceKind::kGpu;
  std::string architecture;  // "sm_90a", "gfx942", "x86-64 AVX-512"
  uint64_t memory_bytes = 0;
  double memory_bandwidth = 0;
  double bf16_flops = 0;  // FP16 where there is no BF16 (said in the file's notes)
  double fp8_flops = 0;
  double int8_flops = 0;
  double fp4_flops = 0;
  double link_bandwidth = 0;  // to the other devices of its domain: NVLink, Infinity Fabric; PCIe where there is none
  uint64_t link_domain = 1;   // devices that reach each other at that rate
  double link_latency = 0;    // seconds, of one small message inside the domain
  double nic_bandwidth = 0;   // its share of the network cards of the usual machine
  double nic_latency = 0;
  // Measured here or by us on such a device; absent: not measured. Predictions become intervals with them.
  std::optional<MeasuredRange> measured_read, measured_bf16, measured_fp8, measured_disk_read;
  std::vector<std::string> notes;
};

// The catalog, sorted by name. Parsed once.
std::span<const Device> devices();
// Error with the nearest names. Case, "-", "_" and blanks do not matter, nor does a vendor before the name ("NVIDIA
// H200", "rtx-4090").
const Device& find_device(std::string_view name);
// A file of the catalog's form. Error naming the key that is missing, malformed or out of range.
Device parse_device(const Json& json, const std::string& source_name);
Json device_json(const Device& device);

}  // namespace nibble
