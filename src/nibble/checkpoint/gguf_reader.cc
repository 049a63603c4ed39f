#include "nibble/checkpoint/gguf_reader.h"

#include <algorithm>

#include "nibble/checkpoint/container_error.h"
#include "nibble/checkpoint/gguf.h"

namespace nibble {

GgufReader::GgufReader(const InputFile& file) : file_bytes_(file.size()), name_(file.path().string()) {
  if (file.mapping().empty()) {
    file_ = &file;
  } else {
    head_ = file.mapping();
  }
}

void GgufReader::need(uint64_t bytes, const char* what) {
  if (bytes > remaining()) {
    throw ShortFileError(Error("the file ends within its header, or a length in it is wrong")
                             .file(name_)
                             .value("reading", what)
                             .value("offset", at_)
                             .value("needed_bytes", bytes)
                             .value("remaining_bytes", remaining())
                             .way_out("it was cut or damaged: fetch it again"));
  }
  const uint64_t end = at_ + bytes;
  if (end > kMaxGgufHeader) {
    throw Error("the header is larger than any real one")
        .file(name_)
        .value("reading", what)
        .value("offset", at_)
        .value("needed_bytes", bytes)
        .value("limit", kMaxGgufHeader)
        .way_out("check that this is the right file, or fetch it again");
  }
  if (end <= head_.size()) return;
  if (file_ == nullptr)
    throw Error("the header is longer than what of it was given")
        .file(name_)
        .value("given_bytes", head_.size())
        .way_out("give more of the file");
  // Doubling keeps the copies linear; tensors begin soon after the infos, so little is read in vain.
  constexpr uint64_t kFirstBytes = uint64_t{1} << 20;
  const uint64_t have = buffer_.size();
  const uint64_t want = std::min({std::max({end, 2 * have, kFirstBytes}), file_bytes_, kMaxGgufHeader});
  buffer_.resize(want);
  read_header_bytes(*file_, have, std::span(buffer_).subspan(have));
  head_ = buffer_;
}

std::string_view GgufReader::string(const char* what) {
  const auto length = number<uint64_t>(what);
  need(length, what);
  const std::string_view text(reinterpret_cast<const char*>(head_.data()) + at_, length);
  at_ += length;
  return text;
}

uint64_t GgufReader::count(const char* what, uint64_t smallest) {
  const uint64_t offset = at_;
  const auto count = number<uint64_t>(what);
  if (count > remaining() / smallest) {
    throw Error("a count in the header is larger than the file could hold")
        .file(name_)
        .value("counting", what)
        .value("offset", offset)
        .value("count", count)
        .value("remaining_bytes", remaining())
        .way_out("it was cut or damaged: fetch it again");
  }
  return count;
}

}  // namespace nibble
