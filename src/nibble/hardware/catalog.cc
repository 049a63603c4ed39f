// The devices that come with the program (data/hardware), and names for them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "nibble/base/embedded_file.h"
#include "nibble/base/error.h"
#include "nibble/base/strings.h"
#include "nibble/hardware/device.h"

namespace nibble {

std::span<const EmbeddedFile> bundled_devices();  // generated, sorted by name

namespace {

// What vendors write before a name; "geforce" may follow "nvidia".
constexpr std::array<std::string_view, 6> kBrands{"nvidia", "geforce", "tesla", "amd", "instinct", "intel"};

void erase_all(std::string& text, std::string_view part) {
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at)) text.erase(at, part.size());
}

// "Intel(R) Xeon(R) Platinum 8480+" and "xeon-platinum_8480" become "xeonplatinum8480". A name that is nothing but a
// brand stays.
std::string comparable(std::string_view name) {
  std::string text(name);
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  std::transform(text.begin(), text.end(), text.begin(), lower);
  for (const std::string_view mark : {"(r)", "(tm)"}) erase_all(text, mark);
  std::erase_if(text, [](char c) { return (c < 'a' || c > 'z') && (c < '0' || c > '9'); });
  for (const std::string_view brand : kBrands) {
    if (starts_with(text, brand) && text.size() > brand.size()) text.erase(0, brand.size());
  }
  return text;
}

std::vector<Device> parse_bundled() {
  std::vector<Device> parsed;
  for (const EmbeddedFile& file : bundled_devices()) {
    const std::string source = fmt::format("data/hardware/{}.json", file.name);
    parsed.push_back(parse_device(parse_json(file.text, source), source));
  }
  std::sort(parsed.begin(), parsed.end(), [](const Device& a, const Device& b) { return a.name < b.name; });
  return parsed;
}

bool answers_to(const Device& device, const std::string& wanted) {
  const auto is_wanted = [&](const std::string& name) { return comparable(name) == wanted; };
  return is_wanted(device.name) || is_wanted(device.title) ||
         std::any_of(device.aliases.begin(), device.aliases.end(), is_wanted);
}

}  // namespace

std::span<const Device> devices() {
  static const std::vector<Device> all = parse_bundled();
  return all;
}

const Device& find_device(std::string_view name) {
  const std::string wanted = comparable(name);
  std::vector<std::string> names;
  for (const Device& device : devices()) {
    if (!wanted.empty() && answers_to(device, wanted)) return device;
    names.push_back(device.name);
  }
  Error error("unknown device");
  error.value("device", std::string(name));
  if (const std::string nearest = nearest_name(wanted, names); !nearest.empty())
    error.way_out(fmt::format("did you mean {}?", nearest));
  throw std::move(error.way_out(fmt::format("use one of {}", fmt::join(names, " ")))
                      .way_out("describe it in a file like those of data/hardware"));
}

}  // namespace nibble
