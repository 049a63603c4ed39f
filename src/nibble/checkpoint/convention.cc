#include "nibble/checkpoint/convention.h"

#include <algorithm>

#include "nibble/base/check.h"
#include "nibble/base/error.h"
#include "nibble/base/strings.h"

namespace nibble {

uint64_t Weight::slices() const {
  uint64_t product = 1;
  for (size_t i = 0; i + 2 < shape.size(); ++i) product *= shape[i];
  return product;
}

uint64_t Weight::rows() const { return shape.size() < 2 ? 1 : shape[shape.size() - 2]; }

uint64_t Weight::cols() const { return shape.empty() ? 1 : shape.back(); }

// The container checks that no stored shape overflows, and a code is at least four bits of stored data: eight times a
// file's size still fits.
uint64_t Weight::elements() const { return slices() * rows() * cols(); }

const Part* Weight::part(PartKind kind) const {
  const auto at = std::find_if(parts.begin(), parts.end(), [kind](const Part& p) { return p.kind == kind; });
  return at == parts.end() ? nullptr : &*at;
}

uint64_t Weight::stored_bytes(const Checkpoint& checkpoint) const {
  uint64_t sum = 0;
  for (const Part& part : parts) sum += checkpoint.tensors()[part.tensor].bytes;
  return sum;
}

int64_t ModuleParts::find(std::string_view suffix) const {
  for (const auto& [name, tensor] : parts) {
    if (name == suffix) return tensor;
  }
  return -1;
}

const DeclaredSizes* ReadContext::declared_for(std::span<const std::string_view> methods) const {
  for (const DeclaredSizes& carrier : declared) {
    if (std::find(methods.begin(), methods.end(), carrier.method) != methods.end()) return &carrier;
  }
  return nullptr;
}

bool Convention::can_write(const Format& /*format*/) const { return false; }

ExpertForm Convention::expert_form(std::string_view /*family*/) const { return ExpertForm::kPerExpert; }
bool Convention::takes_whole_slices(const WriteRequest& /*request*/) const { return false; }
bool Convention::one_second_scale(const WriteRequest& /*request*/) const { return false; }

bool Convention::is_own_layout_of(std::string_view /*family*/, const Format& /*format*/) const { return false; }

std::string Convention::readers_note(std::string_view /*model_type*/) const { return ""; }

SecondLevel Convention::second_level() const { return SecondLevel::kNone; }

std::vector<PartDecl> Convention::declare(const WriteRequest& request) const {
  throw Error("this layout is only read, not written")
      .tensor(request.name)
      .value("layout", std::string(name()))
      .value("format", request.format.name)
      .way_out("choose another --layout");
}

std::vector<PartRun> Convention::emit(const WriteRequest& request, uint64_t /*slice*/, uint64_t /*row_begin*/,
                                      const EncodedView& /*rows*/) const {
  NIBBLE_CHECK(can_write(request.format));
  return {};
}

std::vector<std::pair<std::string, std::string>> Convention::write_config(const ConfigRequest& request,
                                                                          Json* /*config*/) const {
  NIBBLE_CHECK(can_write(request.format));
  return {};
}

const Convention& parse_layout(std::string_view name, const Format& format) {
  std::vector<std::string> writers;
  std::vector<std::string> all;
  for (const Convention* convention : conventions()) {
    const bool writes = convention->can_write(format);
    if (convention->name() == name && writes) return *convention;
    all.emplace_back(convention->name());
    if (writes) writers.emplace_back(convention->name());
  }
  const bool known = std::find(all.begin(), all.end(), name) != all.end();
  Error error(known ? "this layout cannot hold this format" : "unknown layout");
  error.value("layout", std::string(name)).value("format", format.name);
  if (!known) {
    if (const std::string nearest = nearest_name(name, writers); !nearest.empty()) {
      error.way_out("--layout " + nearest + " (did you mean that?)");
    }
  }
  for (const std::string& writer : writers) error.way_out("--layout " + writer);
  if (writers.empty()) error.way_out("choose another --format: no layout holds this one");
  throw error;
}

}  // namespace nibble
