#include "nibble/quantize/shard_writer.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "nibble/base/check.h"
#include "nibble/base/hash.h"
#include "nibble/base/parallel.h"

namespace nibble {
namespace {

constexpr uint64_t kHashChunk = uint64_t{4} << 20;

// Which bytes of the file are there, and how far the hash has come. Whoever writes may be asked to hash a while.
class HashBehind {
 public:
  explicit HashBehind(const OutputFile& file) : file_(file) {}

  void written(uint64_t begin, uint64_t end) {
    const std::scoped_lock lock(mutex_);
    // Joins the range with its neighbours; ranges never overlap.
    auto next = ranges_.lower_bound(begin);
    if (next != ranges_.end() && next->first == end) {
      end = next->second;
      next = ranges_.erase(next);
    }
    if (next != ranges_.begin()) {
      const auto before = std::prev(next);
      if (before->second == begin) {
        before->second = end;
        return;
      }
    }
    ranges_.emplace(begin, end);
  }

  // Hashes what is complete in front, unless another thread is at it. `all`: to the end, waiting for the other thread.
  void advance(bool all) {
    std::unique_lock busy(hashing_, std::defer_lock);
    if (all) {
      busy.lock();
    } else if (!busy.try_lock()) {
      return;
    }
    std::vector<std::byte> buffer;
    for (uint64_t ready = complete(); ready - done_ >= (all ? 1 : kHashChunk); ready = complete()) {
      buffer.resize(std::min(kHashChunk, ready - done_));
      file_.read_at(done_, buffer);
      hash_.update(buffer);
      done_ += buffer.size();
    }
  }

  uint64_t hashed() const { return done_; }
  std::string hex() { return hash_.hex(); }

 private:
  uint64_t complete() {
    const std::scoped_lock lock(mutex_);
    return ranges_.empty() || ranges_.begin()->first != 0 ? 0 : ranges_.begin()->second;
  }

  const OutputFile& file_;
  std::mutex mutex_, hashing_;
  std::map<uint64_t, uint64_t> ranges_;
  Sha256 hash_;
  uint64_t done_ = 0;
};

}  // namespace

ShardResult write_shard(const EncodeContext& context, const OutShard& shard, const Path& folder, int threads) {
  OutputFile file = OutputFile::create(folder / shard.file_name, shard.layout.file_bytes);
  HashBehind hash(file);
  file.write_at(0, std::as_bytes(std::span(shard.layout.header)));
  hash.written(0, shard.layout.header.size());
  ShardResult result;
  result.bytes = shard.layout.file_bytes;
  result.units.resize(shard.units.size());
  parallel_for(shard.units.size(), threads, [&](uint64_t i) {
    result.units[i] = encode_unit(
        context, shard.units[i], [&](uint32_t out, uint32_t part, uint64_t offset, std::span<const std::byte> bytes) {
          if (bytes.empty()) return;
          const OutWeight& weight = context.plan->outs[out];
          NIBBLE_CHECK(offset + bytes.size() <= weight.parts[part].tensor.bytes());
          file.write_at(weight.part_offsets[part] + offset, bytes);
          hash.written(weight.part_offsets[part] + offset, weight.part_offsets[part] + offset + bytes.size());
        });
    hash.advance(false);
  });
  hash.advance(true);
  // A byte that nobody wrote would be a hole in the file: better to stop than to ship it.
  NIBBLE_CHECK(hash.hashed() == shard.layout.file_bytes);
  result.sha256 = hash.hex();
  file.commit();
  return result;
}

}  // namespace nibble
