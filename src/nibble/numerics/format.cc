#include "nibble/numerics/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "nibble/base/check.h"
#include "nibble/base/checked_math.h"
#include "nibble/base/error.h"
#include "nibble/base/strings.h"

namespace nibble {
namespace {

struct ElementFacts {
  Element element;
  uint64_t bits;
  std::string_view name;
};

constexpr ElementFacts kElements[] = {
    {Element::kF32, 32, "f32"},  {Element::kBF16, 16, "bf16"},  {Element::kF16, 16, "f16"},
    {Element::kE4M3, 8, "e4m3"}, {Element::kE5M2, 8, "e5m2"},   {Element::kE2M1, 4, "e2m1"},
    {Element::kInt4, 4, "int4"}, {Element::kUint4, 4, "uint4"}, {Element::kInt8, 8, "int8"},
    {Element::kF64, 64, "f64"},
};

struct ScaleFacts {
  ScaleType type;
  uint64_t bytes;
  std::string_view name;
};

constexpr ScaleFacts kScales[] = {
    {ScaleType::kNone, 0, "none"}, {ScaleType::kF32, 4, "f32"},   {ScaleType::kBF16, 2, "bf16"},
    {ScaleType::kF16, 2, "f16"},   {ScaleType::kE8M0, 1, "e8m0"}, {ScaleType::kE4M3, 1, "e4m3"},
};

const ElementFacts& facts_of(Element element) {
  for (const ElementFacts& facts : kElements) {
    if (facts.element == element) return facts;
  }
  NIBBLE_CHECK(false);
  std::abort();
}

const ScaleFacts& facts_of(ScaleType type) {
  for (const ScaleFacts& facts : kScales) {
    if (facts.type == type) return facts;
  }
  NIBBLE_CHECK(false);
  std::abort();
}

std::optional<Format> find_format(std::string_view name) {
  for (const FormatFamily* family : format_families()) {
    if (auto format = family->parse(name)) return format;
  }
  return std::nullopt;
}

// "int4-gN, mxfp4, …": the families that `wanted` accepts, those spelled most like `name` first.
std::string names_nearest_first(std::string_view name, bool writable_only) {
  std::vector<std::pair<size_t, std::string_view>> patterns;
  for (const FormatFamily* family : format_families()) {
    if (writable_only && !family->writable) continue;
    patterns.emplace_back(edit_distance(family->pattern, name), family->pattern);
  }
  std::ranges::stable_sort(patterns, {}, &std::pair<size_t, std::string_view>::first);
  std::string list;
  for (const auto& [distance, pattern] : patterns) {
    if (!list.empty()) list += ", ";
    list += pattern;
  }
  return list;
}

// FP8 with float scales tolerates partial blocks at the edges (FORMATS.md §2.4); the MX block of 32 does not.
bool allows_partial_blocks(const Format& format) {
  const bool mx = format.block_rows == 1 && format.block_cols == 32 && format.scale == ScaleType::kE8M0;
  return format.element == Element::kE4M3 && format.scale != ScaleType::kE4M3 && !mx;
}

bool has_free_groups(const Format& format) { return format.element == Element::kInt4 && format.block_rows == 1; }

}  // namespace

uint64_t element_bits(Element element) { return facts_of(element).bits; }
uint64_t scale_type_bytes(ScaleType type) { return facts_of(type).bytes; }
std::string_view element_name(Element element) { return facts_of(element).name; }
std::string_view scale_type_name(ScaleType type) { return facts_of(type).name; }

uint64_t Format::code_bits() const { return element_bits(element); }

uint64_t Format::code_row_bytes(uint64_t cols) const { return ceil_div(cols * code_bits(), 8); }

uint64_t Format::scale_rows(uint64_t rows) const {
  if (is_dense()) return 0;
  return block_rows == 0 ? 1 : ceil_div(rows, block_rows);
}

uint64_t Format::scale_cols(uint64_t cols) const {
  if (is_dense()) return 0;
  return block_cols == 0 ? 1 : ceil_div(cols, block_cols);
}

uint64_t Format::scale_bytes() const { return scale_type_bytes(scale); }

std::optional<uint64_t> Format::stored_bytes(uint64_t rows, uint64_t cols) const {
  uint64_t block_bits = container_block_bits;
  if (block_bits == 0) {
    const uint64_t zero_bits = zero == ZeroPoint::kCode ? 4 : zero == ZeroPoint::kMin ? 8 * scale_bytes() : 0;
    block_bits = 8 * scale_bytes() + zero_bits;
  }
  const auto codes = checked_mul(code_row_bytes(cols), rows);
  const auto blocks = checked_mul(scale_rows(rows), scale_cols(cols));
  const auto scale_bits = blocks ? checked_mul(*blocks, block_bits) : std::nullopt;
  if (!codes || !scale_bits) return std::nullopt;
  const auto sum = checked_add(*codes, ceil_div(*scale_bits, 8));
  return sum ? checked_add(*sum, two_level ? sizeof(float) : 0) : std::nullopt;
}

double Format::bits_per_weight(uint64_t rows, uint64_t cols) const {
  const auto bytes = stored_bytes(rows, cols);
  if (!bytes || rows == 0 || cols == 0) return static_cast<double>(code_bits());
  return static_cast<double>(*bytes) * 8 / (static_cast<double>(rows) * static_cast<double>(cols));
}

Format parse_format(std::string_view name) {
  if (auto format = find_format(name)) return *std::move(format);
  throw Error("no format has this name")
      .value("format", std::string(name))
      .way_out("use one of: " + names_nearest_first(name, false));
}

const FormatFamily& family_of(const Format& format) {
  for (const FormatFamily* family : format_families()) {
    if (family->parse(format.name)) return *family;
  }
  throw Error("no format has this name").value("format", format.name);
}

std::vector<Format> example_writable_formats() {
  std::vector<Format> formats;
  for (const FormatFamily* family : format_families()) {
    if (!family->writable) continue;
    std::string name(family->pattern);
    if (const size_t at = name.find("-gN"); at != std::string::npos) name.replace(at, 3, "-g32");
    if (auto format = family->parse(name)) formats.push_back(*std::move(format));
  }
  return formats;
}

bool is_writable(const Format& format) {
  if (!family_of(format).writable) return false;
  return !has_free_groups(format) || (format.block_cols >= 16 && std::has_single_bit(format.block_cols));
}

Format parse_writable_format(std::string_view name) {
  auto format = find_format(name);
  if (format && is_writable(*format)) return *std::move(format);
  throw Error(format ? "this format can be read, but not written" : "no format has this name")
      .value("format", std::string(name))
      .way_out("use one of: " + names_nearest_first(name, true) + " (N a power of two, 16 or more)");
}

std::optional<ShapeProblem> check_shape(const Format& format, uint64_t rows, uint64_t cols) {
  if (format.is_dense() || format.block_cols == 0 || allows_partial_blocks(format)) return std::nullopt;
  if (cols % format.block_cols == 0) return std::nullopt;
  ShapeProblem problem;
  problem.reason = fmt::format("{} columns of a ({}, {}) matrix are not a multiple of {}'s block of {}", cols, rows,
                               cols, format.name, format.block_cols);
  if (has_free_groups(format)) {
    for (uint64_t group = 16; group <= cols && cols % group == 0; group *= 2) problem.legal_groups.push_back(group);
  }
  return problem;
}

}  // namespace nibble
