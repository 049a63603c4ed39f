#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "nibble/base/check.h"
#include "nibble/base/checked_math.h"
#include "nibble/checkpoint/json_scanner.h"
#include "nibble/checkpoint/name_index.h"
#include "nibble/checkpoint/safetensors.h"
#include "nibble/checkpoint/tensor_size.h"

namespace nibble {
namespace {

constexpr uint64_t kLengthBytes = 8;  // in front of the JSON

void append_metadata(std::string* json, const std::map<std::string, std::string>& metadata) {
  if (metadata.empty()) return;
  *json += "\"__metadata__\":{";
  for (const auto& [key, value] : metadata) {
    if (json->back() != '{') *json += ',';
    append_json_string(json, key);
    *json += ':';
    append_json_string(json, value);
  }
  *json += '}';
}

void append_tensor(std::string* json, const TensorDecl& tensor, uint64_t begin, uint64_t end) {
  if (json->back() != '{') *json += ',';
  append_json_string(json, tensor.name);
  *json += fmt::format(R"(:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", dtype_name(tensor.dtype),
                       fmt::join(tensor.shape, ","), begin, end);
}

void check_declarations(const std::vector<TensorDecl>& tensors) {
  NameIndex names;
  names.reserve(tensors.size());
  for (const TensorDecl& tensor : tensors) {
    if (names.insert(tensor.name) >= 0)
      throw Error("two tensors to be written have one name").tensor(tensor.name).way_out("rename one of them");
    if (!is_utf8(tensor.name) || tensor.name == "__metadata__")
      throw Error("a safetensors file cannot hold a tensor of this name").tensor(tensor.name).way_out("rename it");
    if (tensor.shape.size() > kMaxShapeRank) {
      throw Error("a tensor with more dimensions than readers take")
          .tensor(tensor.name)
          .value("dimensions", tensor.shape.size())
          .value("limit", kMaxShapeRank)
          .way_out("merge some of its dimensions");
    }
  }
}

bool is_before(const TensorDecl& a, const TensorDecl& b) {
  return a.dtype != b.dtype ? a.dtype > b.dtype : a.name < b.name;
}

// Whole words of the largest type leave the next tensor as well aligned as they were.
void sort_tensors(std::vector<TensorDecl>* tensors, TensorOrder order) {
  constexpr uint64_t kLargestElement = 8;
  auto sorted = tensors->begin();
  if (order == TensorOrder::kAsGiven) {
    sorted = std::stable_partition(tensors->begin(), tensors->end(),
                                   [](const TensorDecl& tensor) { return tensor.bytes() % kLargestElement == 0; });
  }
  std::sort(sorted, tensors->end(), is_before);
}

// Room for all entries: a header that grows to its size by doubling is held twice.
uint64_t room_for_header(const std::vector<TensorDecl>& tensors) {
  constexpr uint64_t kMetadata = 1000;
  uint64_t bytes = kMetadata;
  for (const TensorDecl& tensor : tensors) bytes += tensor.header_bytes();
  return bytes;
}

}  // namespace

uint64_t TensorDecl::bytes() const { return tensor_bytes(name, dtype, shape); }

// Without making the entry (append_tensor): a plan asks this of every tensor.
uint64_t TensorDecl::header_bytes() const {
  constexpr std::string_view kKeys = R"("":{"dtype":"F8_E4M3","shape":[],"data_offsets":[,]},)";
  constexpr uint64_t kNumber = 20;  // digits of 64 bits
  uint64_t bytes = kKeys.size() + 2 * kNumber;
  for (const char c : name) bytes += static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\' ? 6u : 1u;
  for (const uint64_t dim : shape) bytes += std::to_string(dim).size() + 1;
  return bytes;
}

SafetensorsLayout plan_safetensors(std::vector<TensorDecl> tensors, const std::map<std::string, std::string>& metadata,
                                   TensorOrder order) {
  sort_tensors(&tensors, order);
  check_declarations(tensors);
  SafetensorsLayout layout;
  std::string& header = layout.header;
  header.reserve(room_for_header(tensors));
  header.assign(kLengthBytes, '\0');
  header += '{';
  append_metadata(&header, metadata);
  uint64_t end = 0;
  for (const TensorDecl& tensor : tensors) {
    const auto next = checked_add(end, tensor.bytes());
    if (!next) {
      throw Error("the tensors of one file add up to more than 64 bits can count")
          .tensor(tensor.name)
          .value("bytes_before", end)
          .way_out("write smaller shards");
    }
    append_tensor(&header, tensor, end, *next);
    layout.offsets.push_back(end);
    end = *next;
  }
  header += '}';
  header.resize(ceil_div(header.size(), 8) * 8, ' ');
  const uint64_t length = header.size() - kLengthBytes;
  if (length > kMaxSafetensorsHeader) {
    throw Error("the header would be larger than the format allows")
        .value("header_bytes", length)
        .value("limit", kMaxSafetensorsHeader)
        .value("tensors", tensors.size())
        .way_out("write smaller shards (`--shard-size`)");
  }
  std::memcpy(header.data(), &length, kLengthBytes);
  for (uint64_t& offset : layout.offsets) offset += header.size();
  layout.file_bytes = header.size() + end;
  layout.tensors = std::move(tensors);
  return layout;
}

void write_safetensors(const Path& path, const std::vector<TensorDecl>& tensors,
                       const std::vector<std::vector<std::byte>>& data,
                       const std::map<std::string, std::string>& metadata) {
  NIBBLE_CHECK(tensors.size() == data.size());
  NameIndex names;
  for (const TensorDecl& tensor : tensors) names.insert(tensor.name);
  const SafetensorsLayout layout = plan_safetensors(tensors, metadata);
  OutputFile file = OutputFile::create(path, layout.file_bytes);
  file.write_at(0, std::as_bytes(std::span(layout.header)));
  for (size_t i = 0; i < layout.tensors.size(); ++i) {
    const auto& bytes = data[static_cast<size_t>(names.find(layout.tensors[i].name))];
    NIBBLE_CHECK(bytes.size() == layout.tensors[i].bytes());
    file.write_at(layout.offsets[i], bytes);
  }
  file.commit();
}

}  // namespace nibble
