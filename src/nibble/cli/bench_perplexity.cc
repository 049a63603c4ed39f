#include "nibble/cli/bench_perplexity.h"

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "nibble/base/error.h"
#include "nibble/base/progress.h"
#include "nibble/base/text_file.h"
#include "nibble/engine/memory_check.h"
#include "nibble/engine/open_model.h"
#include "nibble/engine/perplexity.h"
#include "nibble/engine/scheme.h"
#include "nibble/hardware/machine_info.h"
#include "nibble/tokenizer/tokenizer.h"

namespace nibble {
namespace {

constexpr uint64_t kMostText = uint64_t{1} << 30;

}  // namespace

int run_bench_perplexity(const BenchPerplexityArgs& args, const CommonOptions& common) {
  if (args.model.empty()) throw UsageError(Error("no model is named").way_out("--model MODEL"));
  const auto [checkpoint, model] = open_model(args.model, common.thread_count());
  const std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(args.model);
  const std::vector<TokenId> text = tokenizer->encode(read_text(args.file, kMostText));
  check_tokens(model.spec, text);
  check_memory(args.model, resident_bytes(checkpoint, model), machine_info().available_bytes);
  ThreadPool pool(common.thread_count());
  EngineOptions options;
  options.arithmetic = arithmetics_of_scheme(args.scheme);
  Engine engine(checkpoint, model, options, &pool);
  const auto start = std::chrono::steady_clock::now();
  const Perplexity result = measure_perplexity(&engine, text, args.context);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (common.json) {
    print_json(Json{{"perplexity", result.perplexity()},
                    {"mean_nll", result.mean_nll},
                    {"standard_error", result.standard_error},
                    {"windows", result.windows},
                    {"tokens", result.tokens},
                    {"context", args.context},
                    {"scheme", args.scheme},
                    {"seconds", seconds}});
  } else {
    print_out(
        fmt::format("perplexity {:.4f} ({:.4f} nats a token, standard error {:.4f}; {} tokens in {} windows of {}; "
                    "{}; {:.1f} s)\n",
                    result.perplexity(), result.mean_nll, result.standard_error, result.tokens, result.windows,
                    args.context, args.scheme, seconds));
  }
  return kExitDone;
}

}  // namespace nibble
