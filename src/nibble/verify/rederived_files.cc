#include "nibble/verify/rederived_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "nibble/base/error.h"
#include "nibble/quantize/side_files.h"
#include "nibble/verify/byte_difference.h"
#include "nibble/verify/rederive.h"

namespace nibble {
namespace {

// The first `prefix` bytes of a file (all of it by default), and how they should be.
struct Expected {
  std::string what;  // "the header"
  ReadAt read;
  uint64_t bytes = 0;
  uint64_t prefix = UINT64_MAX;
};

void compare_file(const Path& path, const Expected& expected, Rederived* sums, Findings* findings) {
  const auto report = [&](std::string message, std::vector<std::pair<std::string, std::string>> values) {
    ++sums->differing;
    findings->push_back({Severity::kError, kRederiveRule, path.string(), "", std::move(message), std::move(values)});
  };
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    return report("the file is missing: quantize writes it. Copy it again",
                  {{"expected_bytes", std::to_string(expected.bytes)}});
  }
  try {
    const InputFile file = InputFile::open(path);
    const auto stored = [&file](uint64_t offset, std::span<std::byte> out) { file.read_at(offset, out); };
    const ByteDifference difference =
        compare_streams(expected.read, expected.bytes, stored, std::min(file.size(), expected.prefix));
    sums->bytes += difference.compared();
    if (difference.differing() == 0) return;
    sums->differing_bytes += difference.differing();
    auto values = difference.values(expected.bytes);
    values.emplace_back("file_bytes", std::to_string(file.size()));
    report(fmt::format("{} is not what quantize writes: {}. Copy the file again, or make it again with "
                       "`nibble quantize`",
                       expected.what, difference.text(expected.bytes)),
           std::move(values));
  } catch (const Error& error) {
    ++sums->differing;
    findings->push_back(finding_of(error, kRederiveRule));
  }
}

ReadAt reader_of(const std::string& text) {
  return
      [&text](uint64_t offset, std::span<std::byte> out) { std::memcpy(out.data(), text.data() + offset, out.size()); };
}

// Shorter files lack tensors, which are findings of their own.
void refuse_longer(const Path& path, uint64_t planned, Rederived* sums, Findings* findings) {
  std::error_code failure;
  const uint64_t bytes = std::filesystem::file_size(path, failure);
  if (failure || bytes <= planned) return;
  ++sums->differing;
  sums->differing_bytes += bytes - planned;
  findings->push_back({Severity::kError,
                       kRederiveRule,
                       path.string(),
                       "",
                       "the file is longer than quantize writes it. Copy it again",
                       {{"bytes", std::to_string(bytes)}, {"expected_bytes", std::to_string(planned)}}});
}

}  // namespace

void compare_headers(const Path& folder, const OutputPlan& plan, const Checkpoint& base, Rederived* sums,
                     Findings* findings) {
  for (const OutShard& shard : plan.shards) {
    const std::string header = shard_layout(plan, shard, base).header;
    compare_file(folder / shard.file_name, {"the header", reader_of(header), header.size(), header.size()}, sums,
                 findings);
    refuse_longer(folder / shard.file_name, shard.file_bytes, sums, findings);
  }
}

void compare_index(const Path& folder, const OutputPlan& plan, const Checkpoint& base, Rederived* sums,
                   Findings* findings) {
  const auto text = output_index_text(plan, base);
  if (!text) return;
  compare_file(folder / kOutputIndexName, {"the index", reader_of(*text), text->size()}, sums, findings);
}

void compare_side_files(const Path& folder, const Checkpoint& base,
                        const std::vector<std::pair<std::string, std::string>>& texts, Rederived* sums,
                        Findings* findings) {
  for (const auto& [name, text] : texts)
    compare_file(folder / name, {"the file", reader_of(text), text.size()}, sums, findings);
  for (const Path& companion : copied_companions(base, texts)) {
    const InputFile file = InputFile::open(base.folder() / companion);
    const auto read = [&file](uint64_t offset, std::span<std::byte> out) { file.read_at(offset, out); };
    compare_file(folder / companion, {"the copy of BASE's file", read, file.size()}, sums, findings);
  }
}

}  // namespace nibble
