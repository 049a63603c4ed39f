// The request {"kind": "table-walk", "seeds": N, "first_seed": N, "full_steps": N, "qat_steps": N, "schemes":
// ["FORMAT:RULE"…]}: all but the kind may be left out.
#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "nibble/base/error.h"
#include "nibble/numerics/published_formats.h"
#include "nibble/train/experiments/table_walk.h"
#include "nibble/train/experiments/table_walk_report.h"
#include "nibble/train/kind.h"

namespace nibble {
namespace {

constexpr uint64_t kSeeds = 3;

FakeQuant scheme_named(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return fake_quant_named(text);
  return fake_quant_named(text.substr(0, colon), text.substr(colon + 1));
}

bool is_same(const FakeQuant& one, const FakeQuant& other) {
  return one.format == other.format && one.rule.name() == other.rule.name();
}

// The published one, then every published 4-bit format with every rule for it.
std::vector<FakeQuant> all_schemes() {
  const PublishedScheme published = published_training_scheme();
  std::vector<FakeQuant> schemes{fake_quant_named(published.format, published.rule)};
  for (const std::string_view name : published_formats()) {
    const Format format = parse_format(name);
    if (format.code_bits() != 4) continue;
    for (const ScaleRule* rule : scale_rules()) {
      if (!rule->applies(format)) continue;
      FakeQuant scheme = fake_quant_named(name, rule->name);
      if (!is_same(scheme, schemes.front())) schemes.push_back(std::move(scheme));
    }
  }
  return schemes;
}

std::vector<FakeQuant> schemes_of(const Json& request) {
  const Json* named = json_member(request, "schemes");
  if (named == nullptr) return all_schemes();
  if (!named->is_array() || named->empty()) throw Error("schemes is no list of FORMAT:RULE").way_out("leave it out");
  std::vector<FakeQuant> schemes;
  schemes.reserve(named->size());
  for (const Json& one : *named) {
    if (!one.is_string()) throw Error("a scheme is no text").value("scheme", one.dump());
    schemes.push_back(scheme_named(one.get<std::string>()));
  }
  return schemes;
}

TrainAnswer run(const Json& request, const TrainHost& host) {
  const auto number = [&](const char* key, uint64_t otherwise) {
    return json_uint(request, key, "the request").value_or(otherwise);
  };
  TableWalkOptions options;
  options.full_steps = number("full_steps", options.full_steps);
  options.qat_steps = number("qat_steps", options.qat_steps);
  options.schemes = schemes_of(request);
  const uint64_t seeds = number("seeds", kSeeds), first = number("first_seed", 0);
  if (seeds == 0 || seeds - 1 > std::numeric_limits<uint64_t>::max() - first) {
    throw Error("these are no seeds").value("seeds", seeds).value("first_seed", first).way_out("ask for at least one");
  }
  std::vector<TableWalkOutcome> outcomes;
  for (uint64_t i = 0; i < seeds; ++i) {
    outcomes.push_back(run_table_walk(options, first + i, host.show));
    const TableWalkOutcome& last = outcomes.back();
    host.note(fmt::format(
        "seed {}: full precision {:.2f} % of steps, first scheme {:.2f} % rounded, {:.2f} % trained; {:.0f} s",
        last.seed, 100 * last.full.single_step, 100 * last.schemes.front().ptq.single_step,
        100 * last.schemes.front().qat.single_step, last.seconds));
  }
  return {table_walk_json(options, outcomes), table_walk_text(options, outcomes)};
}

}  // namespace

extern const TrainKind kTableWalkKind;
const TrainKind kTableWalkKind{"table-walk", run};

}  // namespace nibble
