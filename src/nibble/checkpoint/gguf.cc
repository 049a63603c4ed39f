#include "nibble/checkpoint/gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "nibble/base/checked_math.h"
#include "nibble/checkpoint/gguf_reader.h"
#include "nibble/checkpoint/json_scanner.h"
#include "nibble/checkpoint/name_index.h"

namespace nibble {
namespace {

constexpr const char* kFetch = "it was cut or damaged: fetch it again";
constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr uint32_t kMaxDims = 4;
constexpr uint64_t kMaxNameBytes = 63;
constexpr int kMaxArrayDepth = 4;

enum ValueType : uint32_t { kU8, kI8, kU16, kI16, kU32, kI32, kF32, kBool, kString, kArray, kU64, kI64, kF64 };
constexpr uint64_t kSmallestBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};  // that a value of the type takes

Dtype plain_dtype(uint32_t type) {
  switch (type) {
    case 0: return Dtype::kF32;
    case 1: return Dtype::kF16;
    case 24: return Dtype::kI8;
    case 25: return Dtype::kI16;
    case 26: return Dtype::kI32;
    case 27: return Dtype::kI64;
    case 28: return Dtype::kF64;
    case 30: return Dtype::kBF16;
    default: return Dtype::kGgufBlock;
  }
}

class GgufParser {
 public:
  explicit GgufParser(GgufReader reader) : in_(std::move(reader)) { out_.name = in_.name(); }

  GgufFile parse() {
    preamble();
    const uint64_t tensors = in_.count("the number of tensors", 8 + 4 + 4 + 8);
    const uint64_t pairs = in_.count("the number of key/value pairs", 8 + 4 + 1);
    for (uint64_t i = 0; i < pairs; ++i) pair();
    check_keys();
    settings();
    for (uint64_t i = 0; i < tensors; ++i) info();
    check_names();
    place_data();
    return std::move(out_);
  }

 private:
  Error refuse(const std::string& message) const {
    Error error(message);
    error.file(out_.name).way_out(kFetch);
    return error;
  }

  void preamble();
  void pair();
  GgufValue value(uint32_t type, int depth);
  GgufValue::Array array(int depth);
  void check_keys() const;
  void settings();
  void info();
  uint64_t tensor_bytes(const StoredTensor& tensor, const GgufType& type) const;
  void check_names() const;
  void place_data();

  GgufReader in_;
  GgufFile out_;
  uint64_t elements_ = 0;    // of all arrays
  uint64_t padded_end_ = 0;  // where the next tensor must begin, relative to the data
};

void GgufParser::preamble() {
  const auto magic = in_.number<uint32_t>("the magic number");
  if (magic != kMagic && magic != __builtin_bswap32(kMagic)) {
    throw Error("not a GGUF file: it does not begin with `GGUF`")
        .file(out_.name)
        .value("first_bytes", fmt::format("{:08x}", __builtin_bswap32(magic)))
        .way_out("check that this is the right file");
  }
  out_.version = in_.number<uint32_t>("the version");
  // Writers of big-endian files swap the version and everything after it, not always the magic.
  if (magic != kMagic || (out_.version & 0xFFFF) == 0) {
    throw Error("a big-endian GGUF file; nibble reads little-endian ones")
        .file(out_.name)
        .value("version", __builtin_bswap32(out_.version))
        .way_out("convert it with `gguf-convert-endian FILE little` of the `gguf` package");
  }
  if (out_.version != 2 && out_.version != 3) {
    throw Error("a GGUF version that nibble does not read")
        .file(out_.name)
        .value("version", out_.version)
        .value("versions_read", "2 and 3")
        .way_out("convert the model again with a current converter");
  }
}

void GgufParser::pair() {
  const uint64_t offset = in_.position();
  std::string key(in_.string("a key"));
  if (key.empty()) throw refuse("an empty key").value("offset", offset);
  if (!is_utf8(key)) throw refuse("a key that is not UTF-8").value("key", key).value("offset", offset);
  try {
    GgufValue found = value(in_.number<uint32_t>("a value's type"), 0);
    out_.metadata.emplace_back(std::move(key), std::move(found));
  } catch (Error& error) {
    error.value("key", key);
    throw;
  }
}

GgufValue GgufParser::value(uint32_t type, int depth) {
  constexpr const char* kWhat = "a value";
  switch (type) {
    case kU8: return {uint64_t{in_.number<uint8_t>(kWhat)}};
    case kI8: return {int64_t{in_.number<int8_t>(kWhat)}};
    case kU16: return {uint64_t{in_.number<uint16_t>(kWhat)}};
    case kI16: return {int64_t{in_.number<int16_t>(kWhat)}};
    case kU32: return {uint64_t{in_.number<uint32_t>(kWhat)}};
    case kI32: return {int64_t{in_.number<int32_t>(kWhat)}};
    case kF32: return {double{in_.number<float>(kWhat)}};
    case kU64: return {in_.number<uint64_t>(kWhat)};
    case kI64: return {in_.number<int64_t>(kWhat)};
    case kF64: return {in_.number<double>(kWhat)};
    case kString: return {std::string(in_.string(kWhat))};
    case kArray: return {array(depth + 1)};
    case kBool: {
      const auto byte = in_.number<uint8_t>(kWhat);
      if (byte > 1) throw refuse("a truth value that is neither 0 nor 1").value("byte", byte);
      return {byte == 1};
    }
    default: throw refuse("an unknown value type").value("type", type).value("offset", in_.position() - 4);
  }
}

GgufValue::Array GgufParser::array(int depth) {
  if (depth > kMaxArrayDepth)
    throw refuse("arrays nested too deeply").value("depth", depth).value("limit", kMaxArrayDepth);
  const auto type = in_.number<uint32_t>("an array's type");
  if (type > kF64) throw refuse("an unknown value type in an array").value("type", type);
  const uint64_t count = in_.count("an array's values", kSmallestBytes[type]);
  elements_ += count;
  if (elements_ > kMaxGgufElements)
    throw refuse("more array values than any real header has")
        .value("values", elements_)
        .value("limit", kMaxGgufElements);
  GgufValue::Array values;
  values.reserve(count);
  for (uint64_t i = 0; i < count; ++i) values.push_back(value(type, depth));
  return values;
}

void GgufParser::check_keys() const {
  NameIndex keys;
  for (const auto& [key, value] : out_.metadata) {
    if (keys.insert(key) >= 0) throw refuse("a key stands twice").value("key", key);
  }
}

// The keys that say how to read the rest.
void GgufParser::settings() {
  out_.alignment = out_.get_uint("general.alignment").value_or(32);
  if (!std::has_single_bit(out_.alignment) || out_.alignment > UINT32_MAX) {
    throw refuse("`general.alignment` is not a power of two").value("general.alignment", out_.alignment);
  }
  const uint64_t parts = out_.get_uint("split.count").value_or(0);
  if (parts > 1) {
    throw Error("one part of a split GGUF model; nibble reads whole ones")
        .file(out_.name)
        .value("split.count", parts)
        .value("split.no", out_.get_uint("split.no").value_or(0))
        .way_out("join the parts: `llama-gguf-split --merge FIRST_PART OUTPUT`");
  }
}

void GgufParser::info() {
  const uint64_t offset = in_.position();
  StoredTensor tensor;
  tensor.name = in_.string("a tensor's name");
  if (tensor.name.empty() || tensor.name.size() > kMaxNameBytes || !is_utf8(tensor.name)) {
    throw refuse("a tensor's name is empty, too long or not UTF-8")
        .tensor(tensor.name.substr(0, 2 * kMaxNameBytes))
        .value("name_bytes", tensor.name.size())
        .value("limit", kMaxNameBytes)
        .value("offset", offset);
  }
  try {
    const auto dims = in_.number<uint32_t>("a tensor's number of dimensions");
    if (dims > kMaxDims) throw refuse("too many dimensions").value("dimensions", dims).value("limit", kMaxDims);
    for (uint32_t i = 0; i < dims; ++i) tensor.shape.insert(tensor.shape.begin(), in_.number<uint64_t>("a dimension"));
    tensor.gguf_type = in_.number<uint32_t>("a tensor's type");
    const GgufType* type = gguf_type(tensor.gguf_type);
    if (type == nullptr) {
      const char* removed = removed_gguf_type(tensor.gguf_type);
      throw Error(removed != nullptr ? fmt::format("the type `{}`, which ggml has removed", removed)
                                     : std::string("a type that this version of nibble does not know"))
          .file(out_.name)
          .value("type", tensor.gguf_type)
          .way_out("convert the model again with a current converter, to a type that nibble reads");
    }
    tensor.dtype = plain_dtype(tensor.gguf_type);
    tensor.bytes = tensor_bytes(tensor, *type);
    tensor.offset = in_.number<uint64_t>("a tensor's offset");
    const auto end = checked_add(padded_end_, tensor.bytes);
    const auto padded = end ? checked_add(*end, out_.alignment - 1) : std::nullopt;
    if (!padded) throw refuse("the tensors add up to more than a file can hold").value("bytes", tensor.bytes);
    if (tensor.offset != padded_end_) {
      throw refuse("a tensor does not begin where the one before it ends, padded")
          .value("offset", tensor.offset)
          .value("expected", padded_end_)
          .value("alignment", out_.alignment);
    }
    padded_end_ = *padded & ~(out_.alignment - 1);
  } catch (Error& error) {
    error.tensor(tensor.name);
    throw;
  }
  out_.tensors.push_back(std::move(tensor));
}

uint64_t GgufParser::tensor_bytes(const StoredTensor& tensor, const GgufType& type) const {
  const auto refuse_shape = [&](const char* message) {
    std::vector<uint64_t> dims(tensor.shape.rbegin(), tensor.shape.rend());
    return refuse(message).value("type", type.name).value("dims", shape_text(dims));
  };
  if (std::ranges::find(tensor.shape, 0u) != tensor.shape.end()) throw refuse_shape("a dimension of 0");
  const auto elements = checked_product(tensor.shape);
  const auto bytes = elements ? checked_mul(*elements / type.block_elements, type.block_bytes) : std::nullopt;
  // ggml counts in signed numbers.
  if (!bytes || *elements > INT64_MAX || *bytes > INT64_MAX)
    throw refuse_shape("the product of the dimensions does not fit 64 bits");
  const uint64_t row = tensor.shape.empty() ? 1 : tensor.shape.back();
  if (row % type.block_elements != 0)
    throw refuse_shape("the first dimension is not a multiple of the type's block").value("block", type.block_elements);
  return *bytes;
}

void GgufParser::check_names() const {
  NameIndex names;
  names.reserve(out_.tensors.size());
  for (const StoredTensor& tensor : out_.tensors) {
    const int64_t earlier = names.insert(tensor.name);
    if (earlier < 0) continue;
    throw refuse("a tensor stands twice in one header")
        .tensor(tensor.name)
        .value("first_offset", out_.tensors[static_cast<size_t>(earlier)].offset)
        .value("second_offset", tensor.offset);
  }
}

// From offsets in the data section to offsets in the file.
void GgufParser::place_data() {
  out_.data_begin = (in_.position() + out_.alignment - 1) & ~(out_.alignment - 1);
  const uint64_t bytes = out_.tensors.empty() ? 0 : out_.tensors.back().offset + out_.tensors.back().bytes;
  const auto end = checked_add(out_.data_begin, bytes);
  if (!end) throw refuse("the tensors add up to more than a file can hold").value("bytes", bytes);
  out_.data_end = *end;
  for (StoredTensor& tensor : out_.tensors) tensor.offset += out_.data_begin;
  if (!out_.tensors.empty() && *end > in_.file_bytes()) out_.missing_bytes = *end - in_.file_bytes();
}

}  // namespace

void check_gguf_size(const GgufFile& file) {
  if (file.missing_bytes == 0) return;
  throw ShortFileError(Error("the file ends before its last tensor does")
                           .file(file.name)
                           .tensor(file.tensors.back().name)
                           .value("needed_bytes", file.data_end)
                           .value("file_bytes", file.data_end - file.missing_bytes)
                           .value("missing_bytes", file.missing_bytes)
                           .way_out("it was cut or is still being written: fetch it again"));
}

GgufFile scan_gguf(const InputFile& file) { return GgufParser(GgufReader(file)).parse(); }

GgufFile read_gguf(const InputFile& file) {
  GgufFile found = scan_gguf(file);
  check_gguf_size(found);
  return found;
}

GgufFile parse_gguf(std::span<const std::byte> head, uint64_t file_bytes, const std::string& file_name) {
  GgufFile found = GgufParser(GgufReader(head, file_bytes, file_name)).parse();
  check_gguf_size(found);
  return found;
}

}  // namespace nibble
