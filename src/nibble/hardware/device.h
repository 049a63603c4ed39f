// What a processor can do at most, as data: one file each in data/hardware, with the source of every figure in it.
// `nibble bench --calibrate` writes a file of the same form for the machine it runs on.
//
// Bytes, bytes a second, operations a second (a multiply-add is two). Peaks are of dense matrices (no structured
// sparsity) with float32 (int32) accumulation; 0: the processor has no such unit. They are named by the element type
// of what is multiplied, since several formats share one. Links are one direction, one device.
#pragma once

#include <cstdint>
#include <map>
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

// What kernels reached of the ceiling that binds (reading, or arithmetic), on the experts of a layer: lowest and
// highest over several models and kernels.
struct MeasuredExperts {
  std::string scheme;  // "w4a16"
  uint64_t tokens = 0;
  MeasuredRange share;  // of 1
  friend bool operator==(const MeasuredExperts&, const MeasuredExperts&) = default;
};

struct Device {
  std::string name;                  // "h200": what the command line takes
  std::string title;                 // "NVIDIA H200 SXM"
  std::vector<std::string> aliases;  // other names that find_device takes, as drivers print them
  DeviceKind kind = DeviceKind::kGpu;
  std::string architecture;  // "sm_90a", "gfx942", "x86-64 AVX-512"
  uint64_t memory_bytes = 0;
  double memory_bandwidth = 0;
  double f32_flops = 0;   // vector units: what is left for code that no matrix unit takes
  double bf16_flops = 0;  // FP16 where there is no BF16 (said in the file's notes)
  double e4m3_flops = 0;  // e5m2 has the same rate
  double int8_flops = 0;
  double e2m1_flops = 0;
  // To the other devices of its domain: NVLink, Infinity Fabric. In a domain of one, the bus to its host (PCIe), over
  // which it also reaches other cards; 0 if it has none.
  double link_bandwidth = 0;
  uint64_t link_domain = 1;          // devices that reach each other at that rate
  bool link_spans_machines = false;  // a domain is no part of a machine: its devices sit in several (NVL72)
  double link_latency = 0;           // seconds, of one small message
  double nic_bandwidth = 0;          // its share of the network cards of the usual machine; 0: none
  double nic_latency = 0;
  // Measured here or by us on such a device; absent: not measured. Predictions become intervals with them.
  std::optional<MeasuredRange> measured_read, measured_f32, measured_bf16, measured_e4m3, measured_int8,
      measured_disk_read;
  std::vector<MeasuredExperts> measured_experts;  // by scheme, then tokens; of the measured ceilings, not the vendor's
  // Where each figure comes from, or how it was measured, by its key in the file ("memory_bandwidth").
  std::map<std::string, std::string> sources;
  std::vector<std::string> notes;
  friend bool operator==(const Device&, const Device&) = default;

  // Devices that reach each other over links, in machines of so many: no more than the domain has, and no more than the
  // machine unless domains span several. Those in a domain of one share their machine's bus; 1 without links.
  uint64_t linked(uint64_t per_machine) const;
  bool has_wires() const { return link_bandwidth > 0 || nic_bandwidth > 0; }
};

// The catalog, sorted by name. Parsed once.
std::span<const Device> devices();
// By name, title or alias. Case, "-", "_" and blanks do not matter, nor does a vendor or brand before the name ("NVIDIA
// H200", "rtx-4090"). Error with the nearest name and all names.
const Device& find_device(std::string_view name);
// A file of the catalog's form, all figures and their sources present. Error naming the file and the key that is
// missing, malformed, unknown or out of range.
Device parse_device(const Json& json, const std::string& source_name);
// parse_device() reads it back as the same device. A figure without a source gets "not stated".
Json device_json(const Device& device);

}  // namespace nibble
