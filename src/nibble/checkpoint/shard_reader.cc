#include "nibble/checkpoint/shard_reader.h"

#include "nibble/base/parallel.h"

namespace nibble {
namespace {

// Opens the file and lets `read` read its header; turns what they throw into findings.
template <typename Read>
ShardContents read_shard(const Path& folder, const std::string& name, const OpenOptions& options, Read&& read) {
  ShardContents shard;
  shard.file.name = name;
  try {
    shard.input = InputFile::open(folder / name, options.mode);
  } catch (const Error& error) {
    shard.findings.push_back(finding_of(error, "unreadable-file"));
    return shard;
  }
  shard.file.bytes = shard.input->size();
  shard.file.mtime_ns = shard.input->mtime_ns();
  try {
    read(*shard.input, &shard);
    shard.header_read = true;
  } catch (const ShortFileError& error) {
    shard.findings.push_back(finding_of(error, "short-file"));
  } catch (const UnreadableFileError& error) {
    shard.findings.push_back(finding_of(error, "unreadable-file"));
  } catch (const Error& error) {
    shard.findings.push_back(finding_of(error, "bad-header"));
  }
  return shard;
}

void judge_size(const SafetensorsHeader& header, const OpenOptions& options, const std::string& path,
                ShardContents* shard) {
  try {
    check_file_size(header, false, path);
  } catch (const ShortFileError& error) {
    shard->findings.push_back(finding_of(error, "short-file"));
  } catch (const Error& error) {
    shard->findings.push_back(finding_of(error, "trailing-bytes"));
    if (options.allow_trailing) shard->findings.back().severity = Severity::kWarning;
  }
}

}  // namespace

std::vector<ShardContents> read_shards(const Path& folder, const std::vector<std::string>& names,
                                       const OpenOptions& options) {
  std::vector<ShardContents> shards(names.size());
  parallel_for(names.size(), options.threads, [&](uint64_t i) {
    shards[i] = read_shard(folder, names[i], options, [&](const InputFile& input, ShardContents* shard) {
      SafetensorsHeader header = scan_safetensors_header(input);
      judge_size(header, options, input.path().string(), shard);
      shard->file.header_bytes = header.header_bytes;
      shard->file.metadata = std::move(header.metadata);
      shard->tensors = std::move(header.tensors);
    });
  });
  return shards;
}

ShardContents read_gguf_shard(const Path& folder, const std::string& name, const OpenOptions& options,
                              std::optional<GgufFile>* gguf) {
  return read_shard(folder, name, options, [&](const InputFile& input, ShardContents* shard) {
    *gguf = scan_gguf(input);
    shard->file.header_bytes = (*gguf)->data_begin;
    shard->tensors = (*gguf)->tensors;
    try {
      check_gguf_size(**gguf);
    } catch (const ShortFileError& error) {
      shard->findings.push_back(finding_of(error, "short-file"));
    }
  });
}

}  // namespace nibble
