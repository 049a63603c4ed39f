#include "nibble/hardware/memory_probe.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "nibble/base/parallel.h"
#include "nibble/base/strings.h"
#include "nibble/hardware/rate.h"

namespace nibble {
namespace {

using Clock = std::chrono::steady_clock;
constexpr uint64_t kChunk = uint64_t{1} << 20;  // between two looks at the clock
constexpr int kPasses = 4;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Memory that has pages of its own, huge ones if the system gives them, filled while `seconds` last, and as far as
// `least` bytes.
class FilledMemory {
 public:
  FilledMemory(uint64_t most, uint64_t least, double seconds, int threads)
      : memory_(std::aligned_alloc(kProbePage, most)) {
    if (memory_ == nullptr) throw std::bad_alloc();
    ::madvise(memory_.get(), most, MADV_HUGEPAGE);  // a hint
    const auto start = Clock::now();
    // Each piece as long as all before: few pieces, and the last one takes about half of the time.
    do {
      const uint64_t piece = std::min(std::max(bytes_, kProbePage * static_cast<uint64_t>(threads)), most - bytes_);
      std::byte* const from = begin() + bytes_;
      const uint64_t chunks = (piece + kProbePage - 1) / kProbePage;
      parallel_for(chunks, threads, [&](uint64_t i) {
        std::memset(from + i * kProbePage, 0x5A, std::min(kProbePage, piece - i * kProbePage));
      });
      bytes_ += piece;
    } while (bytes_ < most && (bytes_ < least || seconds_since(start) < seconds / 2));
  }

  uint64_t bytes() const { return bytes_; }
  const std::byte* data() const { return static_cast<const std::byte*>(memory_.get()); }

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::byte* begin() { return static_cast<std::byte*>(memory_.get()); }

  std::unique_ptr<void, Free> memory_;
  uint64_t bytes_ = 0;
};

// Where each thread has got to in its part; a cache line apart.
struct alignas(64) Cursor {
  uint64_t at = 0;
  uint64_t seen = 0;
};

}  // namespace

uint64_t bytes_beyond_caches() {
  const auto size = [](int name) { return static_cast<uint64_t>(std::max(0L, ::sysconf(name))); };
  return 4 * std::max(size(_SC_LEVEL3_CACHE_SIZE), size(_SC_LEVEL2_CACHE_SIZE));
}

MemoryRate memory_read_rate(const Probes& probes, uint64_t max_bytes, double seconds, int threads,
                            uint64_t least_bytes) {
  const auto start = Clock::now();
  const FilledMemory memory(max_bytes, least_bytes, seconds / 2, threads);
  const int readers = static_cast<int>(std::min(static_cast<uint64_t>(threads), memory.bytes() / kReadStep));
  const uint64_t part = memory.bytes() / static_cast<uint64_t>(readers) / kReadStep * kReadStep;
  std::vector<Cursor> cursors(static_cast<size_t>(readers));
  // At least a quarter of the time, should filling have taken longer than planned.
  const double rest = std::max(seconds - seconds_since(start), seconds / 4);
  const double slice = rest / static_cast<double>(probes.reads.size() * kPasses);
  MemoryRate best;
  const char* best_way = "";
  for (const ReadProbe& probe : probes.reads) {
    const MeasuredRange range = rates_of(kPasses, readers, slice, [&](int thread) {
      Cursor& cursor = cursors[static_cast<size_t>(thread)];
      const uint64_t bytes = std::min(kChunk, part - cursor.at);
      cursor.seen ^= probe.run(memory.data() + static_cast<uint64_t>(thread) * part + cursor.at, bytes);
      cursor.at = (cursor.at + bytes) % part;
      return static_cast<double>(bytes);
    });
    if (range.high <= best.read.high) continue;
    best.read = range;
    best_way = probe.what;
  }
  best.bytes = memory.bytes();
  best.how =
      fmt::format("{} read by {} threads with {}, {}: the best of {} ways, {} passes each", human_bytes(best.bytes),
                  readers, isa_name(probes.isa), best_way, probes.reads.size(), kPasses);
  return best;
}

}  // namespace nibble
