#include "nibble/quantize/shard_writer.h"

#include "nibble/base/check.h"
#include "nibble/base/parallel.h"
#include "nibble/quantize/hash_behind.h"

namespace nibble {

ShardWriter::ShardWriter(const EncodeContext& context, const OutShard& shard, const Path& folder)
    : context_(context),
      shard_(shard),
      file_(OutputFile::create(folder / shard.file_name, shard.file_bytes)),
      hash_(std::make_unique<HashBehind>(file_, shard.file_bytes)) {
  result_.bytes = shard.file_bytes;
  result_.units.resize(shard.units.size());
}

ShardWriter::~ShardWriter() = default;

void ShardWriter::write_header() {
  const std::string header = shard_layout(*context_.plan, shard_, *context_.source).header;
  file_.write_at(0, std::as_bytes(std::span(header)));
  hash_->written(0, std::as_bytes(std::span(header)));
}

void ShardWriter::encode(int threads) {
  write_header();
  parallel_for(shard_.units.size(), threads, [&](uint64_t i) {
    result_.units[i] = encode_unit(context_, shard_.units[i],
                                   [&](uint32_t out, uint32_t part, uint64_t offset, std::span<const std::byte> bytes) {
                                     if (bytes.empty()) return;
                                     const uint64_t begin = context_.plan->outs[out].part_offsets[part] + offset;
                                     file_.write_at(begin, bytes);
                                     hash_->written(begin, bytes);
                                   });
    hash_->advance(false);
  });
}

ShardResult ShardWriter::finish() {
  hash_->advance(true);
  // A byte that nobody wrote would be a hole in the file: better to stop than to ship it.
  NIBBLE_CHECK(hash_->hashed() == shard_.file_bytes);
  result_.sha256 = hash_->hex();
  return std::move(result_);
}

}  // namespace nibble
