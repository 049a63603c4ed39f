#include "nibble/kernels/tuning.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "nibble/base/error.h"
#include "nibble/base/log.h"
#include "nibble/hardware/machine_info.h"

namespace nibble {
namespace {

constexpr uint64_t kMostBytes = uint64_t{4} << 20;

std::optional<ActivationKind> activations_named(std::string_view name) {
  for (const ActivationKind kind :
       {ActivationKind::kF32, ActivationKind::kInt8, ActivationKind::kE2M1, ActivationKind::kBF16}) {
    if (activation_kind_name(kind) == name) return kind;
  }
  return std::nullopt;
}

Error no_table(const std::string& source, const std::string& what) {
  return Error("this is no table of measured kernels: " + what)
      .file(source)
      .way_out("measure again: nibble bench --tune")
      .way_out("set NIBBLE_TUNING=none to go without");
}

TuningRow row_of(const Json& json, const std::string& source) {
  TuningRow row;
  row.layout = json_string(json, "layout", source).value_or("");
  row.kernel = json_string(json, "kernel", source).value_or("");
  row.tokens = json_uint(json, "tokens", source).value_or(0);
  row.microseconds = json_double(json, "us", source).value_or(0);
  const std::string kind = json_string(json, "activations", source).value_or("");
  const auto activations = activations_named(kind);
  if (!activations) throw no_table(source, "activations of the kind '" + kind + "'");
  row.activations = *activations;
  if (row.layout.empty() || row.kernel.empty()) throw no_table(source, "a row without a layout or a kernel");
  if (row.tokens == 0 || row.tokens != first_of_token_class(token_class(row.tokens)))
    throw no_table(source, fmt::format("a row for {} tokens", row.tokens));
  return row;
}

std::optional<Path> cache_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache == '/') return Path(cache) / "nibble";
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home == '/') return Path(home) / ".cache" / "nibble";
  return std::nullopt;
}

TuningTable read_table() {
  const std::optional<Path> file = tuning_file();
  std::error_code ignored;
  if (!file || !std::filesystem::exists(*file, ignored)) return {};
  const bool asked_for = std::getenv("NIBBLE_TUNING") != nullptr;
  try {
    return TuningTable::parse(read_json(*file, kMostBytes), machine_info().processor, file->string());
  } catch (const Error& error) {
    if (asked_for) throw;
    log::warning(std::string(error.what()) + "; kernels are chosen without it");
    return {};
  }
}

}  // namespace

uint64_t token_class(uint64_t tokens) {
  const auto index = static_cast<uint64_t>(std::bit_width(std::max<uint64_t>(tokens, 1))) - 1;
  return std::min(index, kTokenClasses - 1);
}

std::string layout_kind(const WeightLayout& layout) {
  std::string kind =
      fmt::format("{}/{}/{}", code_kind_name(layout.codes),
                  layout.scale == ScaleType::kNone ? "none" : scale_type_name(layout.scale), layout.tile_cols);
  if (layout.zero != ZeroPoint::kNone) kind += layout.zero == ZeroPoint::kCode ? "/zeros" : "/minima";
  if (layout.apart_cols != 0) kind += layout.apart_lanes == 1 ? "/blocks" : "/rows";
  return kind;
}

void TuningTable::add(TuningRow row) {
  const auto same = [&](const TuningRow& other) {
    return other.layout == row.layout && other.activations == row.activations && other.tokens == row.tokens;
  };
  const auto at = std::ranges::find_if(rows_, same);
  if (at == rows_.end()) {
    rows_.push_back(std::move(row));
  } else {
    *at = std::move(row);
  }
}

const TuningRow* TuningTable::find(std::string_view layout, ActivationKind activations, uint64_t tokens) const {
  const uint64_t first = first_of_token_class(token_class(tokens));
  for (const TuningRow& row : rows_) {
    if (row.layout == layout && row.activations == activations && row.tokens == first) return &row;
  }
  return nullptr;
}

Json TuningTable::json(const std::string& processor) const {
  Json rows = Json::array();
  for (const TuningRow& row : rows_) {
    rows.push_back(Json{{"layout", row.layout},
                        {"activations", activation_kind_name(row.activations)},
                        {"tokens", row.tokens},
                        {"kernel", row.kernel},
                        {"us", std::round(row.microseconds * 100) / 100}});
  }
  return Json{{"processor", processor}, {"rows", std::move(rows)}};
}

TuningTable TuningTable::parse(const Json& json, const std::string& processor, const std::string& source) {
  const Json* rows = json_member(json, "rows");
  if (rows == nullptr || !rows->is_array()) throw no_table(source, "it has no list `rows`");
  TuningTable table;
  if (json_string(json, "processor", source) != processor) return table;
  for (const Json& row : *rows) table.add(row_of(row, source));
  return table;
}

std::optional<Path> tuning_file() {
  const char* named = std::getenv("NIBBLE_TUNING");
  if (named != nullptr && std::string_view(named) == "none") return std::nullopt;
  if (named != nullptr && *named != '\0') return Path(named);
  const std::optional<Path> folder = cache_folder();
  return folder ? std::optional(*folder / "tuning.json") : std::nullopt;
}

const TuningTable& machine_tuning() {
  static const TuningTable table = read_table();
  return table;
}

}  // namespace nibble
