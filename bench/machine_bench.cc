// What this machine can do at this moment, as the measure of the other benchmarks (bench/run.py): memory read and
// copied, SHA-256 and XXH3-128 with the functions that nibble uses, and a file written and synced. Bytes per second;
// virtual machines change their speed within minutes, so take these beside what they are compared with.
//
//   NIBBLE_BENCH_DIR=FOLDER    where write_and_sync puts its file (default: the temporary folder)
#include <benchmark/benchmark.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "nibble/base/check.h"
#include "nibble/base/file.h"
#include "nibble/base/hash.h"

namespace nibble {
namespace {

constexpr size_t kLarge = size_t{1} << 30;  // several times the largest last-level cache
constexpr size_t kFile = size_t{1} << 28;
constexpr size_t kChunk = size_t{1} << 20;  // stays in the second-level cache

// Shared by all: filled once, so that every page has memory of its own.
std::vector<uint64_t>& large() {
  static std::vector<uint64_t> words(kLarge / sizeof(uint64_t), 0x0123456789ABCDEFu);
  return words;
}

std::span<const std::byte> bytes(size_t from, size_t count) {
  return std::as_bytes(std::span(large())).subspan(from, count);
}

// The part of the shared memory that a thread of this benchmark has.
struct Part {
  size_t from, count;

  explicit Part(const benchmark::State& state)
      : from(kLarge / static_cast<size_t>(state.threads()) * static_cast<size_t>(state.thread_index())),
        count(kLarge / static_cast<size_t>(state.threads())) {}
};

void set_bytes(benchmark::State& state, size_t each) {
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * static_cast<int64_t>(each));
}

// Thirty-two words a step, so that enough loads are under way.
__attribute__((target_clones("avx512f", "avx2", "default"))) uint64_t xor_of(const uint64_t* words, size_t count) {
  std::array<uint64_t, 32> sums{};
  for (size_t i = 0; i < count; i += sums.size())
    for (size_t j = 0; j < sums.size(); ++j) sums[j] ^= words[i + j];
  uint64_t all = 0;
  for (const uint64_t sum : sums) all ^= sum;
  return all;
}

void read_memory(benchmark::State& state) {
  const Part part(state);
  const uint64_t* words = large().data() + part.from / sizeof(uint64_t);
  for (auto _ : state) benchmark::DoNotOptimize(xor_of(words, part.count / sizeof(uint64_t)));
  set_bytes(state, part.count);
}
BENCHMARK(read_memory)->ThreadRange(1, 2)->UseRealTime();

// From one half to the other; counted once.
void copy_memory(benchmark::State& state) {
  const Part part(state);
  char* half = reinterpret_cast<char*>(large().data()) + part.from;
  for (auto _ : state) {
    std::memcpy(half, half + part.count / 2, part.count / 2);
    benchmark::ClobberMemory();
  }
  set_bytes(state, part.count / 2);
}
BENCHMARK(copy_memory)->ThreadRange(1, 2)->UseRealTime();

void sha256(benchmark::State& state) {
  const std::span<const std::byte> chunk = bytes(0, kChunk);
  for (auto _ : state) benchmark::DoNotOptimize(sha256_hex(chunk));
  set_bytes(state, kChunk);
}
BENCHMARK(sha256)->UseRealTime();

void xxh3_from_memory(benchmark::State& state) {
  const std::span<const std::byte> whole = bytes(0, kLarge);
  for (auto _ : state) benchmark::DoNotOptimize(xxh3_hex(whole));
  set_bytes(state, kLarge);
}
BENCHMARK(xxh3_from_memory)->UseRealTime();

void write_and_sync(benchmark::State& state) {
  const char* folder = std::getenv("NIBBLE_BENCH_DIR");
  const Path file = (folder == nullptr ? std::filesystem::temp_directory_path() : Path(folder)) / "machine_bench.bytes";
  const std::span<const std::byte> content = bytes(0, kFile);
  for (auto _ : state) write_atomically(file, content);
  std::filesystem::remove(file);
  set_bytes(state, kFile);
}
BENCHMARK(write_and_sync)->UseRealTime()->Iterations(2);

}  // namespace
}  // namespace nibble

BENCHMARK_MAIN();
