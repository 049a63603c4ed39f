// How fast a checkpoint of 500,000 tensors in 100 shards with its index is opened: the size of the largest open models
// (FORMATS.md §4.4). Files are made once, sparse, in the temporary folder; headers and index are real bytes.
// Target: under 3 s on two cores, in at most 400 MB.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <fstream>
#include <string>
#include <vector>

#include "nibble/base/check.h"
#include "nibble/checkpoint/checkpoint.h"
#include "nibble/checkpoint/shard_index.h"
#include "nibble/testing/temp_dir.h"

namespace nibble {
namespace {

constexpr int kShards = 100;
constexpr int kTensorsPerShard = 5000;

std::string tensor_name(int tensor) {
  return fmt::format("language_model.model.layers.{}.block_sparse_moe.experts.{}.w{}.{}", tensor / 5376,
                     tensor / 6 % 896, tensor / 2 % 3 + 1, tensor % 2 != 0 ? "weight_scale" : "weight_packed");
}

// The folder, made at the first call.
const Path& big_checkpoint() {
  static const testing::TempDir dir;
  static const bool made = [] {
    ShardIndex index;
    for (int shard = 0; shard < kShards; ++shard) {
      index.files.push_back(fmt::format("model-{:05}-of-{:05}.safetensors", shard + 1, kShards));
      std::vector<TensorDecl> tensors;
      for (int i = shard * kTensorsPerShard; i < (shard + 1) * kTensorsPerShard; ++i) {
        tensors.push_back({tensor_name(i), Dtype::kU8, {3072, i % 2 != 0 ? 112u : 1792u}});
        index.weights.emplace_back(tensor_name(i), static_cast<uint32_t>(shard));
      }
      const SafetensorsLayout layout = plan_safetensors(std::move(tensors), {{"format", "pt"}});
      write_atomically(dir / index.files.back(), layout.header);
      std::filesystem::resize_file(dir / index.files.back(), layout.file_bytes);
    }
    write_atomically(dir / "model.safetensors.index.json", shard_index_text(index));
    write_atomically(dir / "config.json", std::string_view("{}"));
    return true;
  }();
  NIBBLE_CHECK(made);
  return dir.path();
}

// Peak resident bytes since `reset`; the kernel counts from the start otherwise.
double peak_mb(bool reset) {
  if (reset) std::ofstream("/proc/self/clear_refs") << "5";
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    double kib = 0;
    if (word == "VmHWM:" && status >> kib) return kib * 1024 / 1e6;
  }
  return 0;
}

void open_checkpoint(benchmark::State& state) {
  OpenOptions options;
  options.threads = static_cast<int>(state.range(0));
  const Path& folder = big_checkpoint();
  const double before = peak_mb(true);
  for (auto _ : state) {
    const Checkpoint checkpoint = Checkpoint::open(folder, options);
    NIBBLE_CHECK(checkpoint.tensors().size() == size_t{kShards} * kTensorsPerShard);
    NIBBLE_CHECK(checkpoint.find(tensor_name(123'456)) >= 0);
  }
  state.counters["peak_MB"] = peak_mb(false) - before;
}
BENCHMARK(open_checkpoint)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();

void parse_header(benchmark::State& state) {
  const Path file = big_checkpoint() / "model-00050-of-00100.safetensors";
  const uint64_t size = read_safetensors_header(InputFile::open(file)).header_bytes - 8;
  std::string header(size, ' ');
  InputFile::open(file).read_at(8, std::as_writable_bytes(std::span(header)));
  for (auto _ : state) {
    const size_t tensors = parse_safetensors_header(header, UINT64_MAX >> 1, "header", true).tensors.size();
    NIBBLE_CHECK(tensors == size_t{kTensorsPerShard});
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(size));
}
BENCHMARK(parse_header)->Unit(benchmark::kMillisecond);

void parse_index(benchmark::State& state) {
  const std::string text = read_text(big_checkpoint() / "model.safetensors.index.json", uint64_t{1} << 30);
  for (auto _ : state)
    NIBBLE_CHECK(parse_shard_index(text, "index").weights.size() == size_t{kShards} * kTensorsPerShard);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(text.size()));
}
BENCHMARK(parse_index)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace nibble

BENCHMARK_MAIN();
