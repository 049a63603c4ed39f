#include "nibble/hardware/device.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "nibble/base/error.h"

namespace nibble {
namespace {

constexpr const char* kCorrect = "correct the file; data/hardware/README.md says what each key holds and its unit";

// What a figure may be. `least` and `most` catch wrong units: gigabytes for bytes, teraflops for flops, microseconds
// for seconds.
struct Bounds {
  double least, most;
  bool zero;  // 0 is allowed: the device has none
};
constexpr Bounds kMemory{1e8, 1e15, false};
constexpr Bounds kMemoryRate{1e8, 1e15, false};
constexpr Bounds kFlops{1e9, 1e18, true};
constexpr Bounds kLinkRate{1e6, 1e14, true};
constexpr Bounds kDevices{1, 1e5, false};
constexpr Bounds kLatency{1e-9, 1e-2, true};
constexpr Bounds kDiskRate{1e5, 1e13, false};

template <typename T>
struct Key {
  const char* name;
  T Device::* member;
  Bounds bounds;
};

constexpr Key<uint64_t> kMemoryKey{"memory_bytes", &Device::memory_bytes, kMemory};
constexpr Key<uint64_t> kDomainKey{"link_domain", &Device::link_domain, kDevices};
constexpr std::array<Key<double>, 10> kFigures{{
    {"memory_bandwidth", &Device::memory_bandwidth, kMemoryRate},
    {"f32_flops", &Device::f32_flops, kFlops},
    {"bf16_flops", &Device::bf16_flops, kFlops},
    {"e4m3_flops", &Device::e4m3_flops, kFlops},
    {"int8_flops", &Device::int8_flops, kFlops},
    {"e2m1_flops", &Device::e2m1_flops, kFlops},
    {"link_bandwidth", &Device::link_bandwidth, kLinkRate},
    {"link_latency", &Device::link_latency, kLatency},
    {"nic_bandwidth", &Device::nic_bandwidth, kLinkRate},
    {"nic_latency", &Device::nic_latency, kLatency},
}};
constexpr std::array<Key<std::optional<MeasuredRange>>, 6> kRanges{{
    {"measured_read", &Device::measured_read, kMemoryRate},
    {"measured_f32", &Device::measured_f32, kFlops},
    {"measured_bf16", &Device::measured_bf16, kFlops},
    {"measured_e4m3", &Device::measured_e4m3, kFlops},
    {"measured_int8", &Device::measured_int8, kFlops},
    {"measured_disk_read", &Device::measured_disk_read, kDiskRate},
}};
constexpr const char* kExperts = "measured_experts";
constexpr const char* kSpans = "link_spans_machines";
constexpr std::array<std::string_view, 6> kSchemeNames{"w16a16", "w8a16", "w8a8", "w4a16", "w4a8", "w4a4"};
constexpr std::array<const char*, 6> kTexts{"name", "title", "aliases", "kind", "architecture", "notes"};

class DeviceReader {
 public:
  DeviceReader(const Json& json, const std::string& source) : json_(json), source_(source) {
    if (!json.is_object()) throw refuse("a device should be a JSON object");
    refuse_others(json, [](const std::string& key) {
      const auto is_key = [&](const auto& known) { return key == known.name; };
      return std::find(kTexts.begin(), kTexts.end(), key) != kTexts.end() || is_key(kMemoryKey) || is_key(kDomainKey) ||
             std::any_of(kFigures.begin(), kFigures.end(), is_key) ||
             std::any_of(kRanges.begin(), kRanges.end(), is_key) || key == kExperts || key == kSpans;
    });
  }

  Device read() {
    device_.name = text("name");
    device_.title = text("title");
    device_.aliases = texts("aliases");
    device_.kind = kind();
    device_.architecture = text("architecture");
    read_whole(kMemoryKey);
    for (const auto& key : kFigures) device_.*key.member = read_value(member(key.name, "value"), key.name, key.bounds);
    read_whole(kDomainKey);
    read_spans();
    for (const auto& key : kRanges) read_range(key);
    read_experts();
    device_.notes = texts("notes");
    if (device_.link_domain > 1 && device_.link_bandwidth == 0)
      throw refuse("a domain of several devices needs `link_bandwidth`").value("link_domain", device_.link_domain);
    // A unit slipped in one of the two, which would make floors longer than what was measured.
    if (device_.measured_read && device_.measured_read->high > device_.memory_bandwidth)
      throw refuse("`measured_read` is above `memory_bandwidth`")
          .value("measured_read", device_.measured_read->high)
          .value("memory_bandwidth", device_.memory_bandwidth);
    return std::move(device_);
  }

 private:
  Error refuse(const std::string& message) const { return std::move(Error(message).file(source_).way_out(kCorrect)); }

  template <typename Known>
  void refuse_others(const Json& object, const Known& known) const {
    for (const auto& [key, value] : object.items()) {
      if (!known(key)) throw refuse("unknown key in the description of a device").value("key", key);
    }
  }

  const Json& required(const Json& object, const std::string& key, const std::string& path) const {
    const Json* value = json_member(object, key);
    if (value == nullptr) throw refuse(fmt::format("the description of a device lacks `{}`", path));
    return *value;
  }

  std::string text(const std::string& key) const {
    required(json_, key, key);
    std::string value = *json_string(json_, key, source_);
    if (value.empty()) throw refuse(fmt::format("`{}` is empty", key));
    return value;
  }

  std::vector<std::string> texts(const std::string& key) const {
    const Json* list = json_member(json_, key);
    if (list == nullptr) return {};
    const bool all = list->is_array() && std::all_of(list->begin(), list->end(), [](const Json& v) {
                       return v.is_string() && !v.get_ref<const std::string&>().empty();
                     });
    if (!all) throw refuse(fmt::format("`{}` should be a list of texts", key)).value(key, list->dump().substr(0, 80));
    return list->get<std::vector<std::string>>();
  }

  DeviceKind kind() const {
    const std::string value = text("kind");
    if (value == "gpu") return DeviceKind::kGpu;
    if (value == "cpu") return DeviceKind::kCpu;
    throw refuse("`kind` should be gpu or cpu").value("kind", value);
  }

  // The object under `key`, its source taken: {"value": …, "source": …} or {"low": …, "high": …, "source": …}.
  const Json& member(const std::string& key, std::string_view first, std::string_view second = "") {
    const Json& figure = required(json_, key, key);
    if (!figure.is_object())
      throw refuse(fmt::format("`{}` should be an object with `{}` and `source`", key, first))
          .value(key, figure.dump().substr(0, 80));
    refuse_others(figure, [&](const std::string& k) { return k == first || k == second || k == "source"; });
    required(figure, "source", key + ".source");
    std::string source = *json_string(figure, "source", source_);
    if (source.empty()) throw refuse(fmt::format("`{}` has no source", key));
    device_.sources[key] = std::move(source);
    return figure;
  }

  // A number and its key with the part that holds it: "memory_bytes.value".
  double number(const Json& figure, const std::string& path, const char* part) const {
    const Json& value = required(figure, part, path);
    if (!value.is_number() || !std::isfinite(value.get<double>()))
      throw refuse(fmt::format("`{}` should be a finite number", path)).value("value", value.dump().substr(0, 80));
    return value.get<double>();
  }

  double read_value(const Json& figure, const std::string& key, const Bounds& bounds,
                    const char* part = "value") const {
    const std::string path = fmt::format("{}.{}", key, part);
    const double value = number(figure, path, part);
    if ((value == 0 && bounds.zero) || (value >= bounds.least && value <= bounds.most)) return value;
    throw refuse(fmt::format("`{}` is out of range", path))
        .value("value", value)
        .value("least", bounds.least)
        .value("most", bounds.most)
        .way_out(bounds.zero ? "0 if the device has none" : "leave the device out of the catalog");
  }

  void read_whole(const Key<uint64_t>& key) {
    const double value = read_value(member(key.name, "value"), key.name, key.bounds);
    if (value != std::floor(value))
      throw refuse(fmt::format("`{}.value` should be a whole number", key.name)).value("value", value);
    device_.*key.member = static_cast<uint64_t>(value);  // exact: the bounds end far below 2^53
  }

  // Left out where a domain lies in one machine.
  void read_spans() {
    if (json_member(json_, kSpans) == nullptr) return;
    const Json& value = required(member(kSpans, "value"), "value", "link_spans_machines.value");
    if (!value.is_boolean())
      throw refuse("`link_spans_machines.value` should be true or false").value("value", value.dump().substr(0, 80));
    device_.link_spans_machines = value.get<bool>();
  }

  void read_range(const Key<std::optional<MeasuredRange>>& key) {
    if (json_member(json_, key.name) == nullptr) return;
    const Json& figure = member(key.name, "low", "high");
    // Measured is what happened: a unit that is not there was not measured.
    const Bounds bounds{key.bounds.least, key.bounds.most, false};
    const MeasuredRange range{read_value(figure, key.name, bounds, "low"),
                              read_value(figure, key.name, bounds, "high")};
    if (range.low > range.high)
      throw refuse(fmt::format("`{}` ends below its beginning", key.name))
          .value("low", range.low)
          .value("high", range.high);
    device_.*key.member = range;
  }

  // Of a known scheme, behind the row before it.
  bool in_order(const MeasuredExperts& row) const {
    if (std::find(kSchemeNames.begin(), kSchemeNames.end(), row.scheme) == kSchemeNames.end()) return false;
    const auto& rows = device_.measured_experts;
    if (!rows.empty() && rows.back().scheme == row.scheme) return rows.back().tokens < row.tokens;
    return std::none_of(rows.begin(), rows.end(), [&](const auto& other) { return other.scheme == row.scheme; });
  }

  // {"shares": [[scheme, tokens, low, high], …], "source": …}, by scheme and ascending tokens.
  void read_experts() {
    if (json_member(json_, kExperts) == nullptr) return;
    const Json& shares = required(member(kExperts, "shares"), "shares", "measured_experts.shares");
    const auto refuse_row = [&](const Json& row) {
      throw refuse(
          "an entry of `measured_experts` should be [scheme, tokens, low, high]: rows of a scheme together, tokens "
          "ascending, shares above 0 and up to 1")
          .value("entry", row.dump().substr(0, 80))
          .value("schemes", fmt::format("{}", fmt::join(kSchemeNames, " ")));
    };
    if (!shares.is_array()) refuse_row(shares);
    for (const Json& row : shares) {
      const bool typed = row.is_array() && row.size() == 4 && row[0].is_string() && row[1].is_number_unsigned() &&
                         row[2].is_number() && row[3].is_number();
      if (!typed) refuse_row(row);
      MeasuredExperts made{
          row[0].get<std::string>(), row[1].get<uint64_t>(), {row[2].get<double>(), row[3].get<double>()}};
      const bool share = made.share.low > 0 && made.share.low <= made.share.high && made.share.high <= 1;
      if (!in_order(made) || !share || made.tokens == 0) refuse_row(row);
      device_.measured_experts.push_back(std::move(made));
    }
  }

  const Json& json_;
  const std::string& source_;
  Device device_;
};

std::string source_of(const Device& device, const char* key) {
  const auto found = device.sources.find(key);
  return found == device.sources.end() || found->second.empty() ? "not stated" : found->second;
}

}  // namespace

uint64_t Device::linked(uint64_t per_machine) const {
  if (link_bandwidth <= 0) return 1;
  if (link_spans_machines) return link_domain;
  return link_domain == 1 ? per_machine : std::min(link_domain, per_machine);
}

Device parse_device(const Json& json, const std::string& source_name) { return DeviceReader(json, source_name).read(); }

Json device_json(const Device& device) {
  Json json;
  json["name"] = device.name;
  json["title"] = device.title;
  if (!device.aliases.empty()) json["aliases"] = device.aliases;
  json["kind"] = device.kind == DeviceKind::kGpu ? "gpu" : "cpu";
  json["architecture"] = device.architecture;
  const auto add = [&](const auto& key) {
    json[key.name] = {{"value", device.*key.member}, {"source", source_of(device, key.name)}};
  };
  add(kMemoryKey);
  for (const auto& key : kFigures) {
    add(key);
    if (key.member != &Device::link_bandwidth) continue;
    add(kDomainKey);  // belongs beside it
    if (device.link_spans_machines) json[kSpans] = {{"value", true}, {"source", source_of(device, kSpans)}};
  }
  for (const auto& key : kRanges) {
    const auto& range = device.*key.member;
    if (!range) continue;
    json[key.name] = {{"low", range->low}, {"high", range->high}, {"source", source_of(device, key.name)}};
  }
  if (!device.measured_experts.empty()) {
    Json shares = Json::array();
    for (const MeasuredExperts& made : device.measured_experts)
      shares.push_back({made.scheme, made.tokens, made.share.low, made.share.high});
    json[kExperts] = {{"shares", std::move(shares)}, {"source", source_of(device, kExperts)}};
  }
  if (!device.notes.empty()) json["notes"] = device.notes;
  return json;
}

}  // namespace nibble
