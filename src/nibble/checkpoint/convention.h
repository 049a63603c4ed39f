// A convention is one way of writing quantized weights into a container: which stored tensors make up one logical
// weight, how they map to a format's canonical arrays, and what the configuration says. One file each in conventions/,
// a row in convention_list.cc; earlier rows claim first, `dense` is last.
//
// Conventions know tensors and formats, not models: what a weight is for (its role), whether a dense one is stored
// transposed or permuted, is decided by models/ from the family.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nibble/base/finding.h"
#include "nibble/checkpoint/checkpoint.h"
#include "nibble/checkpoint/declared_sizes.h"
#include "nibble/checkpoint/quant_hints.h"
#include "nibble/numerics/encoded.h"
#include "nibble/numerics/format.h"

namespace nibble {

enum class PartKind : uint8_t {
  kCodes,
  kScales,
  kSecondScale,
  kInputScale,
  kZeros,
  kGroupIndex,
  kShape,
  kPreQuantScale,
  kOther,
};

struct Part {
  PartKind kind = PartKind::kCodes;
  uint32_t tensor = 0;  // index into Checkpoint::tensors()
};

class Convention;

// How the stored rows of a dense weight relate to (N, K); set by models/ after grouping.
enum class RowOrder : uint8_t {
  kPlain,
  kTransposed,       // stored (…, K, N)
  kGgufRotaryPairs,  // GGUF llama q/k: rows of a head interleaved for pairwise rotation (FORMATS.md §9.4)
};

// One logical weight: the name an unquantized checkpoint would give it.
struct Weight {
  std::string name;  // "model.layers.0.mlp.experts.3.gate_proj.weight", "….mlp.experts.gate_up_proj"
  const Convention* convention = nullptr;
  Format format;
  std::vector<uint64_t> shape;  // (…, N, K) in logical orientation; rank 0 and 1 for scalars and vectors
  std::vector<Part> parts;      // kCodes first
  bool opaque = false;          // integers, booleans: copied, never decoded
  RowOrder row_order = RowOrder::kPlain;
  uint64_t rotary_heads = 0;  // for kGgufRotaryPairs
  uint32_t variant = 0;       // the convention's own (GPTQ version, act-order present, …)

  // The weight as a stack of matrices: product of leading dimensions, rows N, columns K (a vector is one row).
  uint64_t slices() const;
  uint64_t rows() const;
  uint64_t cols() const;
  uint64_t elements() const;
  const Part* part(PartKind kind) const;
  uint64_t stored_bytes(const Checkpoint& checkpoint) const;
};

// The stored tensors that share a module name: "M" with suffixes "weight_packed", "weight_scale" …
struct ModuleParts {
  std::string_view module;
  std::span<const std::pair<std::string_view, uint32_t>> parts;  // (suffix, tensor index), sorted by suffix
  // Tensor index of a suffix, or -1.
  int64_t find(std::string_view suffix) const;
};

struct ReadContext {
  const Checkpoint* checkpoint = nullptr;
  QuantHints hints;
  std::vector<DeclaredSizes> declared;  // one per carrier of quantization settings
  Findings* findings = nullptr;

  // The carrier that declares one of `methods`, or null.
  const DeclaredSizes* declared_for(std::span<const std::string_view> methods) const;
};

// What is to be written as one logical weight.
struct WriteRequest {
  std::string name;
  Format format;
  std::vector<uint64_t> shape;           // (…, N, K)
  Element model_dtype = Element::kBF16;  // scale dtype where the convention uses the model's
  SecondLevel second_level = SecondLevel::kNone;
  bool transposed = false;  // the family's module computes with (…, K, N): layouts that keep a module's axes follow it
};

struct PartDecl {
  PartKind kind = PartKind::kCodes;
  TensorDecl tensor;
};

// Bytes for a place inside a declared part.
struct PartRun {
  uint32_t part = 0;    // index into declare()'s result
  uint64_t offset = 0;  // bytes from the part's start
  std::vector<std::byte> bytes;
  std::span<const std::byte> view;  // not empty: the content, unchanged in the rows that were given; `bytes` is empty

  std::span<const std::byte> content() const { return view.empty() ? std::span<const std::byte>(bytes) : view; }
};

// What the configuration must tell.
struct ConfigRequest {
  Format format;
  std::string rule;           // stored beside the observer's name where the convention has such a field
  bool all_by_rule = true;    // no weight kept scales that it came with
  std::string source_family;  // model_type of the source
  Element model_dtype = Element::kBF16;
  std::vector<std::string> quantized;   // module names (no ".weight"), sorted
  std::vector<std::string> kept;        // modules with a 2-D or larger weight that stay as they are, sorted
  std::vector<std::string> norms;       // modules of role norm, sorted
  const Json* source_config = nullptr;  // the source's config.json, or null
  std::string tool_version;
};

// How a convention wants routed experts.
enum class ExpertForm : uint8_t { kPerExpert, kFusedInterleaved, kAsSource };

class Convention {
 public:
  virtual ~Convention() = default;
  virtual std::string_view name() const = 0;  // also the --layout name if writable

  // Values of quant_method that declare this convention; empty for dense. Used to find contradictions.
  virtual std::span<const std::string_view> methods() const = 0;

  // ---- reading
  // Last name components (or "_blocks"-like tails) by which stored names are split into module and suffix.
  virtual std::span<const std::string_view> suffixes() const = 0;
  // Claims what of `module` it recognises: appends weights and marks the parts in `used` (same order as module.parts;
  // parts that an earlier convention used are already marked). A recognised but broken module (scale without weight,
  // wrong shape) is a finding, not a weight: its parts are marked too, so that nobody reports them twice.
  virtual void claim(const ModuleParts& module, const ReadContext& context, std::vector<Weight>* weights,
                     std::vector<bool>* used) const = 0;
  // False: rows of a matrix cannot be read apart cheaply (GPTQ, AWQ, transposed): read() wants whole slices.
  virtual bool rows_contiguous(const Weight& weight) const = 0;
  // Rows [row_begin, row_begin + rows) of slice `slice`, as stored: row_order is read_rows()'s (weight_table.h).
  virtual EncodedMatrix read(const Checkpoint& checkpoint, const Weight& weight, uint64_t slice, uint64_t row_begin,
                             uint64_t rows) const = 0;

  // ---- writing (defaults: nothing can be written)
  virtual bool can_write(const Format& format) const;
  virtual ExpertForm expert_form(std::string_view family) const;
  // Is this how releases of model family `family` are written in `format` (gpt-oss: its own blocks)? Then it is the
  // default layout for that family's 16-bit checkpoints too.
  virtual bool is_own_layout_of(std::string_view family, const Format& format) const;
  // What a user must know who writes it for a model of type `model_type`: which programs read it there. "" where the
  // field's loaders do for any model.
  virtual std::string readers_note(std::string_view model_type) const;
  virtual SecondLevel second_level() const;
  // Does emit() want whole slices, whose rows are not bytes in a row of their own?
  virtual bool takes_whole_slices(const WriteRequest& request) const;
  // Do all slices of the stack share one second-level scale?
  virtual bool one_second_scale(const WriteRequest& request) const;
  virtual std::vector<PartDecl> declare(const WriteRequest& request) const;
  // Turns encoded rows into part bytes. Row cuts are multiples of 128 (or the end, or takes_whole_slices()).
  virtual std::vector<PartRun> emit(const WriteRequest& request, uint64_t slice, uint64_t row_begin,
                                    const EncodedView& rows) const;
  // Sets quantization_config in `config`; extra files by name ("hf_quant_config.json").
  virtual std::vector<std::pair<std::string, std::string>> write_config(const ConfigRequest& request,
                                                                        Json* config) const;
};

inline constexpr std::string_view kDefaultLayout = "compressed-tensors";

// The list: convention_list.cc holds its rows and nothing else.
std::span<const Convention* const> conventions();
// Error with the names of the writable ones if `name` is unknown or cannot write `format`.
const Convention& parse_layout(std::string_view name, const Format& format);

}  // namespace nibble
