#include "nibble/engine/bench/tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "nibble/engine/bench/op_bench.h"
#include "nibble/engine/bench/random_weights.h"
#include "nibble/kernels/select.h"

namespace nibble {
namespace {

constexpr double kClearly = 0.97;
constexpr int kTurns = 3;
constexpr std::string_view kReference = "reference";

// Those that run, the one that is chosen without a table first.
std::vector<const Kernel*> able(const WeightLayout& layout, ActivationKind activations) {
  std::vector<const Kernel*> runs;
  runs.reserve(kernels().size());
  for (const Candidate& candidate : candidates(layout, activations, "", 1, TuningTable())) {
    if (candidate.verdict == Verdict::kNo) continue;
    const bool first = candidate.verdict == Verdict::kChosen;
    runs.insert(first ? runs.begin() : runs.end(), candidate.kernel);
  }
  if (runs.size() > 1) std::erase_if(runs, [](const Kernel* kernel) { return kernel->name == kReference; });
  return runs;
}

class Tuner {
 public:
  Tuner(const TuneRequest& request, ThreadPool* pool, const std::function<void(const std::string&)>& doing)
      : request_(request), pool_(pool), doing_(doing) {}

  TuneResult run() {
    for (const std::string& format : request_.formats) add(format);
    return std::move(result_);
  }

 private:
  void add(const std::string& format) {
    const WeightLayout layout = needed_layout(parse_format(format), request_.rows, request_.cols);
    const Arithmetics& how = request_.arithmetic;
    const ActivationKind activations = activations_of(layout, how.integer_activations, how.rounding);
    const std::string kind = layout_kind(layout);
    if (!done_.insert({kind, activations}).second) return;
    const std::vector<const Kernel*> runs = able(layout, activations);
    for (uint64_t i = 0; i < kTokenClasses; ++i) {
      const uint64_t tokens = first_of_token_class(i);
      if (doing_) doing_(fmt::format("{}, {} tokens: {} kernels", format, tokens, runs.size()));
      const TuneRow& best = measure(format, runs, tokens);
      result_.table.push_back({kind, activations, tokens, best.kernel, best.seconds * 1e6});
    }
  }

  // Appends a row a kernel; the quickest. They take turns, and the best turn counts: what else the machine does must
  // not choose.
  const TuneRow& measure(const std::string& format, const std::vector<const Kernel*>& runs, uint64_t tokens) {
    const size_t first = result_.rows.size();
    for (const Kernel* kernel : runs)
      result_.rows.push_back({format, std::string(kernel->name), tokens, std::numeric_limits<double>::infinity()});
    for (int turn = 0; turn < (runs.size() > 1 ? kTurns : 1); ++turn) {
      for (size_t i = 0; i < runs.size(); ++i) {
        double& seconds = result_.rows[first + i].seconds;
        seconds = std::min(seconds, seconds_of(format, *runs[i], tokens));
      }
    }
    size_t best = first;
    for (size_t i = first + 1; i < result_.rows.size(); ++i) {
      const double clearly = best == first ? kClearly : 1;
      if (result_.rows[i].seconds < clearly * result_.rows[best].seconds) best = i;
    }
    result_.rows[best].chosen = true;
    return result_.rows[best];
  }

  double seconds_of(const std::string& format, const Kernel& kernel, uint64_t tokens) const {
    OpBenchRequest one;
    one.op = {"product", 0, 1, request_.rows, request_.cols};
    one.format = format;
    one.tokens = tokens;
    one.arithmetic = request_.arithmetic;
    one.arithmetic.kernel = std::string(kernel.name);
    one.seconds = request_.seconds / kTurns;
    one.memory = request_.memory;
    one.check = false;
    return run_op_bench(one, pool_).seconds;
  }

  const TuneRequest& request_;
  ThreadPool* pool_;
  const std::function<void(const std::string&)>& doing_;
  std::set<std::pair<std::string, ActivationKind>> done_;
  TuneResult result_;
};

}  // namespace

TuneResult tune(const TuneRequest& request, ThreadPool* pool, const std::function<void(const std::string&)>& doing) {
  return Tuner(request, pool, doing).run();
}

}  // namespace nibble
