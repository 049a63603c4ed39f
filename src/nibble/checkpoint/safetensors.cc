#include "nibble/checkpoint/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <tuple>

#include "nibble/checkpoint/json_scanner.h"
#include "nibble/checkpoint/name_index.h"
#include "nibble/checkpoint/tensor_size.h"

namespace nibble {
namespace {

constexpr const char* kBrokenHeader = "the header is wrong: fetch the file again or export it again";
constexpr size_t kQuotedBytes = 80;

std::string span_text(uint64_t begin, uint64_t end) { return fmt::format("[{}, {}]", begin, end); }

// Reads one header; each tensor's `offset` is still relative to the byte buffer.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& file_name) : scan_(text, file_name), file_(file_name) {}

  SafetensorsHeader parse() {
    if (scan_.peek() != JsonKind::kObject)
      throw Error("the header is not a JSON object").file(file_).way_out(kBrokenHeader);
    scan_.object([this](std::string_view key) {
      if (key == "__metadata__") {
        metadata();
      } else {
        tensor(key);
      }
    });
    scan_.end();
    return std::move(header_);
  }

 private:
  enum Field : unsigned { kDtype = 1, kShape = 2, kOffsets = 4, kAllFields = 7 };

  Error refuse(const std::string& message) const {
    Error error(message);
    error.file(file_).way_out(kBrokenHeader);
    return error;
  }

  // The next value stands where something else is wanted.
  [[noreturn]] void refuse_value(const char* field, const char* wanted) {
    const std::string_view found = scan_.skip();
    throw refuse(fmt::format("`{}` should be {}", field, wanted))
        .value(field, std::string(found.substr(0, kQuotedBytes)));
  }

  void metadata() {
    if (seen_metadata_) throw refuse("`__metadata__` stands twice in the header");
    seen_metadata_ = true;
    if (scan_.peek() != JsonKind::kObject) refuse_value("__metadata__", "an object of strings");
    scan_.object([this](std::string_view key_view) {
      std::string key(key_view);
      if (scan_.peek() != JsonKind::kString) {
        const std::string_view found = scan_.skip();
        throw refuse("a value in `__metadata__` is not a string")
            .value("key", key)
            .value("found", std::string(found.substr(0, kQuotedBytes)));
      }
      const auto [at, added] = header_.metadata.emplace(std::move(key), scan_.string());
      if (!added) throw refuse("a key stands twice in `__metadata__`").value("key", at->first);
    });
  }

  void tensor(std::string_view name) {
    StoredTensor& tensor = header_.tensors.emplace_back();
    tensor.name = name;
    try {
      fields(&tensor);
    } catch (Error& error) {
      if (error.tensor().empty()) error.tensor(tensor.name);
      if (error.file().empty()) error.file(file_);
      throw;
    }
  }

  void fields(StoredTensor* tensor) {
    if (scan_.peek() != JsonKind::kObject) refuse_value("tensor", "an object with dtype, shape and data_offsets");
    unsigned seen = 0;
    uint64_t end = 0;
    scan_.object([&](std::string_view key) {
      const unsigned field = key == "dtype" ? kDtype : key == "shape" ? kShape : key == "data_offsets" ? kOffsets : 0u;
      if ((seen & field) != 0) throw refuse("a field stands twice in one tensor").value("field", std::string(key));
      seen |= field;
      switch (field) {
        case kDtype: tensor->dtype = dtype(); break;
        case kShape: shape(&tensor->shape); break;
        case kOffsets: offsets(&tensor->offset, &end); break;
        default: scan_.skip();
      }
    });
    if (seen != kAllFields) {
      const char* missing = (seen & kDtype) == 0 ? "dtype" : (seen & kShape) == 0 ? "shape" : "data_offsets";
      throw refuse("a tensor lacks a field").value("missing", missing);
    }
    check(*tensor, end);
    tensor->bytes = end - tensor->offset;
  }

  Dtype dtype() {
    if (scan_.peek() != JsonKind::kString) refuse_value("dtype", "a string");
    const std::string_view name = scan_.string();
    const auto found = parse_dtype(name);
    if (!found) {
      throw Error(fmt::format("unknown dtype `{}`", name))
          .file(file_)
          .value("dtype", std::string(name))
          .way_out("use a nibble that knows this dtype")
          .way_out("export the file with one of the types of safetensors 0.8 (F32, BF16, F8_E4M3, U8, F4 and so on)");
    }
    return *found;
  }

  // Shape and offsets are arrays of whole numbers; anything else is quoted as it stands.
  std::span<const uint64_t> numbers(const char* field, const char* wanted, uint64_t limit) {
    if (scan_.peek() != JsonKind::kArray) refuse_value(field, wanted);
    uint64_t count = 0;
    scan_.array([&] {
      if (scan_.peek() != JsonKind::kNumber) refuse_value(field, wanted);
      const std::string_view text = scan_.number();
      const auto number = whole_number(text);
      if (!number)
        throw refuse(fmt::format("`{}` should be {}", field, wanted))
            .value("found", std::string(text.substr(0, kQuotedBytes)));
      if (count == limit)
        throw refuse(fmt::format("`{}` should be {}", field, wanted)).value("more_numbers_than", limit);
      numbers_[count++] = *number;
    });
    return {numbers_.data(), count};
  }

  void shape(std::vector<uint64_t>* shape) {
    const auto dims = numbers("shape", "an array of at most 64 whole numbers of 0 or more", kMaxShapeRank);
    shape->assign(dims.begin(), dims.end());
  }

  void offsets(uint64_t* begin, uint64_t* end) {
    constexpr const char* kWanted = "an array of two whole numbers of 0 or more";
    const auto found = numbers("data_offsets", kWanted, 2);
    if (found.size() != 2)
      throw refuse(fmt::format("`data_offsets` should be {}", kWanted)).value("numbers_found", found.size());
    *begin = found[0];
    *end = found[1];
  }

  void check(const StoredTensor& tensor, uint64_t end) const {
    if (end < tensor.offset)
      throw refuse("`data_offsets` end before they begin").value("data_offsets", span_text(tensor.offset, end));
    const uint64_t wanted = tensor_bytes(tensor.name, tensor.dtype, tensor.shape);
    if (wanted == end - tensor.offset) return;
    throw refuse(wanted > end - tensor.offset ? "the span in the file is shorter than the shape needs"
                                              : "the span in the file is longer than the shape needs")
        .value("dtype", std::string(dtype_name(tensor.dtype)))
        .value("shape", shape_text(tensor.shape))
        .value("shape_bytes", wanted)
        .value("span_bytes", end - tensor.offset)
        .value("data_offsets", span_text(tensor.offset, end));
  }

  JsonScanner scan_;
  const std::string& file_;
  SafetensorsHeader header_;
  bool seen_metadata_ = false;
  std::array<uint64_t, kMaxShapeRank> numbers_{};
};

void refuse_duplicates(const std::vector<StoredTensor>& tensors, const std::string& file_name) {
  NameIndex names;
  names.reserve(tensors.size());
  for (const StoredTensor& tensor : tensors) {
    const int64_t earlier = names.insert(tensor.name);
    if (earlier < 0) continue;
    const StoredTensor& first = tensors[static_cast<size_t>(earlier)];
    throw Error("a tensor stands twice in one header")
        .file(file_name)
        .tensor(tensor.name)
        .value("first_offsets", span_text(first.offset, first.offset + first.bytes))
        .value("second_offsets", span_text(tensor.offset, tensor.offset + tensor.bytes))
        .way_out(kBrokenHeader);
  }
}

// The spans, in order, must tile the byte buffer from 0 without gap or overlap. Returns where the last one ends.
uint64_t check_tiling(const std::vector<StoredTensor>& tensors, const std::string& file_name) {
  uint64_t end = 0;
  const StoredTensor* previous = nullptr;
  for (const StoredTensor& tensor : tensors) {
    if (tensor.offset != end) {
      Error error(previous == nullptr   ? "the first tensor does not begin at 0"
                  : tensor.offset < end ? "two tensors overlap in the file"
                                        : "there is a gap between two tensors in the file");
      error.file(file_name).tensor(tensor.name);
      error.value("data_offsets", span_text(tensor.offset, tensor.offset + tensor.bytes));
      if (previous != nullptr) {
        error.value("previous_tensor", previous->name);
        error.value("previous_offsets", span_text(previous->offset, end));
      }
      throw error.way_out(kBrokenHeader);
    }
    end += tensor.bytes;
    previous = &tensor;
  }
  return end;
}

SafetensorsHeader scan_header(std::string_view text, uint64_t buffer_bytes, const std::string& file_name) {
  SafetensorsHeader header = HeaderParser(text, file_name).parse();
  refuse_duplicates(header.tensors, file_name);
  std::sort(header.tensors.begin(), header.tensors.end(), [](const StoredTensor& a, const StoredTensor& b) {
    return std::tie(a.offset, a.bytes, a.name) < std::tie(b.offset, b.bytes, b.name);
  });
  const uint64_t end = check_tiling(header.tensors, file_name);
  header.header_bytes = 8 + text.size();
  header.trailing_bytes = buffer_bytes > end ? buffer_bytes - end : 0;
  header.missing_bytes = end > buffer_bytes ? end - buffer_bytes : 0;
  if (end > UINT64_MAX - header.header_bytes) {
    throw Error("the header claims more bytes than a file can hold")
        .file(file_name)
        .value("bytes", end)
        .way_out(kBrokenHeader);
  }
  for (StoredTensor& tensor : header.tensors) tensor.offset += header.header_bytes;
  return header;
}

// The N of the first eight bytes, checked against the format's limit and the file.
uint64_t header_length(const InputFile& file) {
  if (file.size() < 8) {
    throw ShortFileError(Error("too short for a safetensors file, which begins with 8 bytes of header length")
                             .file(file.path().string())
                             .value("file_bytes", file.size())
                             .way_out("it was cut or is still being written: fetch it again"));
  }
  uint64_t length = 0;
  read_header_bytes(file, 0, std::as_writable_bytes(std::span(&length, 1)));
  if (length > kMaxSafetensorsHeader) {
    throw Error(
        "not a safetensors file, or its first 8 bytes are damaged: the header length is over the format's limit")
        .file(file.path().string())
        .value("header_bytes", length)
        .value("limit", kMaxSafetensorsHeader)
        .way_out(
            "check that this is the right file (a text file or an LFS pointer looks like this too) and fetch it again");
  }
  if (length > file.size() - 8) {
    throw ShortFileError(Error("the file ends within its header")
                             .file(file.path().string())
                             .value("header_bytes", length)
                             .value("file_bytes", file.size())
                             .value("missing_bytes", length - (file.size() - 8))
                             .way_out("it was cut or is still being written: fetch it again"));
  }
  return length;
}

}  // namespace

SafetensorsHeader scan_safetensors_header(const InputFile& file) {
  static_assert(std::endian::native == std::endian::little);
  const uint64_t length = header_length(file);
  const std::string name = file.path().string();
  const uint64_t buffer_bytes = file.size() - 8 - length;
  if (!file.mapping().empty())
    return scan_header({reinterpret_cast<const char*>(file.mapping().data()) + 8, length}, buffer_bytes, name);
  std::string text(length, '\0');
  read_header_bytes(file, 8, std::as_writable_bytes(std::span(text)));
  return scan_header(text, buffer_bytes, name);
}

void check_file_size(const SafetensorsHeader& header, bool allow_trailing, const std::string& file_name) {
  if (header.missing_bytes > 0) {
    Error error("the file ends before its last tensor does");
    error.file(file_name);
    const uint64_t needed = header.tensors.back().offset + header.tensors.back().bytes;
    for (const StoredTensor& tensor : header.tensors) {
      if (tensor.offset + tensor.bytes <= needed - header.missing_bytes) continue;
      error.tensor(tensor.name);  // the first that is not whole
      break;
    }
    throw ShortFileError(error.value("needed_bytes", needed)
                             .value("file_bytes", needed - header.missing_bytes)
                             .value("missing_bytes", header.missing_bytes)
                             .way_out("it was cut or is still being written: fetch it again"));
  }
  if (header.trailing_bytes > 0 && !allow_trailing) {
    throw Error("there are bytes after the last tensor")
        .file(file_name)
        .value("trailing_bytes", header.trailing_bytes)
        .way_out("fetch the file again")
        .way_out("allow trailing bytes (`--allow-trailing`) if the writer is known to pad");
  }
}

SafetensorsHeader read_safetensors_header(const InputFile& file, bool allow_trailing) {
  SafetensorsHeader header = scan_safetensors_header(file);
  check_file_size(header, allow_trailing, file.path().string());
  return header;
}

SafetensorsHeader parse_safetensors_header(std::string_view header, uint64_t buffer_bytes, const std::string& file_name,
                                           bool allow_trailing) {
  SafetensorsHeader parsed = scan_header(header, buffer_bytes, file_name);
  check_file_size(parsed, allow_trailing, file_name);
  return parsed;
}

}  // namespace nibble
