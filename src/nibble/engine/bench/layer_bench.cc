#include "nibble/engine/bench/layer_bench.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "nibble/base/check.h"
#include "nibble/base/error.h"
#include "nibble/base/rng.h"
#include "nibble/base/stopwatch.h"
#include "nibble/base/strings.h"
#include "nibble/engine/bench/measure.h"
#include "nibble/engine/bench/random_cache.h"
#include "nibble/engine/supports.h"
#include "nibble/models/bundled_models.h"

namespace nibble {
namespace {

constexpr const char* kOtherMatrices = "int8-g32";
constexpr uint64_t kCheckedTokens = 4;
// Runs take their input from one list of numbers, each from another place, and so meet other experts.
constexpr uint64_t kPlaces = 65537;

LayerSpec chosen_layer(const ModelSpec& spec) {
  const auto first = [&](const auto& fits) { return std::find_if(spec.layers.begin(), spec.layers.end(), fits); };
  auto found = first([](const LayerSpec& one) { return one.mlp == MlpKind::kMoe && one.sliding_window == 0; });
  if (found == spec.layers.end()) found = first([](const LayerSpec& one) { return one.mlp == MlpKind::kMoe; });
  return found == spec.layers.end() ? spec.layers.front() : *found;
}

RandomLayers random_layers(const LayerBenchRequest& request, ThreadPool* pool) {
  RandomLayersRequest layers;
  layers.spec = &request.model;
  layers.layer = chosen_layer(request.model);
  layers.experts = parse_format(request.format);
  layers.others = layers.layer.mlp == MlpKind::kMoe ? parse_format(kOtherMatrices) : layers.experts;
  layers.memory = request.memory;
  layers.available = request.available;
  layers.how = request.arithmetic;
  return {layers, pool};
}

}  // namespace

ModelSpec bundled_shape(const std::string& name) {
  const EmbeddedFile* file = find_bundled_model(name);
  if (file == nullptr) {
    std::vector<std::string> known;
    for (const EmbeddedFile& each : bundled_models()) known.emplace_back(each.name);
    Error error("no bundled model has this name");
    error.value("shape", name);
    if (const std::string nearest = nearest_name(name, known); !nearest.empty()) error.way_out("--shape " + nearest);
    throw error.way_out("gpt-oss-20b and qwen3-30b-a3b are two of them");
  }
  const Json config = parse_json(file->text, name);
  Model model;
  model.family = find_family(config);
  model.family_name = family_label(config);
  if (model.family != nullptr) model.spec = model.family->parse(config, name);
  refuse_unsupported(model, name);
  return model.spec;
}

LayerBench::LayerBench(const LayerBenchRequest& request, ThreadPool* pool)
    : request_(request), pool_(pool), weights_(random_layers(request, pool)), forward_(weights_.spec(), pool) {
  forward_.multiplier().set_log(&work_);
}

// x_ goes in, and the layer's output takes its place.
void LayerBench::run(uint64_t copy, uint64_t tokens, CachedSequence* sequence) {
  Batch batch;
  batch.add(sequence, tokens);
  work_.clear();
  forward_.layer(copy, weights_.layers()[copy], batch, x_.data());
}

void LayerBench::set_kernel(const std::string& name) {
  request_.arithmetic.kernel = name;
  const auto choose = [&](Linear& matrix) { nibble::set_kernel(request_.arithmetic, &matrix); };
  for (LayerWeights& layer : weights_.layers()) for_matrices(layer, choose);
}

std::string LayerBench::kernels() const {
  std::set<std::string_view> names;
  for_matrices(weights_.layers().front(), [&](const Linear& matrix) { names.insert(matrix.kernel_name()); });
  return fmt::format("{}", fmt::join(names, ", "));
}

double LayerBench::check() {
  const ModelSpec& spec = weights_.spec();
  std::vector<float> input(kCheckedTokens * spec.hidden);
  for (uint64_t i = 0; i < input.size(); ++i) input[i] = static_cast<float>(random_normal(3, i));
  const auto output = [&] {
    CachedSequence sequence(spec, CacheElement::kBF16);
    x_ = input;
    run(0, kCheckedTokens, &sequence);
    return x_;
  };
  const std::vector<float> got = output();
  const std::string chosen = request_.arithmetic.kernel;
  set_kernel("reference");
  const std::vector<float> wanted = output();
  set_kernel(chosen);
  LargestError error;
  error.add(got, wanted);
  return error.share();
}

PassRow LayerBench::measure(uint64_t tokens, uint64_t context) {
  NIBBLE_CHECK(tokens == 1 || context == 0);
  const ModelSpec& spec = weights_.spec();
  check_positions(spec, context + tokens);
  CachedSequence sequence(spec, CacheElement::kBF16);
  fill_randomly(spec.layers.size(), context, pool_, &sequence);
  ModelSpec one = spec;
  one.layers.resize(1);
  const uint64_t size = tokens * spec.hidden;
  std::vector<float> numbers(size + kPlaces);
  for (uint64_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(random_normal(2, i));
  PassRow row{tokens == 1 ? "decode" : "prefill", tokens, context, 0, 0, {}};
  std::vector<double> seconds;
  for (double spent = 0; seconds.size() < 3 || spent < request_.seconds; spent += seconds.back()) {
    const auto at = numbers.begin() + static_cast<ptrdiff_t>(random_bits(1, seconds.size()) % kPlaces);
    x_.assign(at, at + static_cast<ptrdiff_t>(size));
    const Stopwatch watch;
    run(seconds.size() % weights_.layers().size(), tokens, &sequence);
    seconds.push_back(watch.seconds());
  }
  row.runs = seconds.size();
  // One token chooses the same number of experts in each run; a prompt of hundreds nearly all of them.
  row.steps = work_;
  row.steps.push_back(tokens == 1 ? decode_attention(one, CacheElement::kBF16, context)
                                  : prefill_attention(one, CacheElement::kBF16, tokens));
  if (tokens == 1) row.steps.assign(1, sum_of(row.steps));
  row.seconds = median(std::move(seconds));
  return row;
}

}  // namespace nibble
