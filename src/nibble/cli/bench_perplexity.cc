#include "nibble/cli/bench_perplexity.h"

#include <fmt/format.h>

#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "nibble/base/error.h"
#include "nibble/base/peak_memory.h"
#include "nibble/base/stopwatch.h"
#include "nibble/base/strings.h"
#include "nibble/base/text_file.h"
#include "nibble/engine/memory_check.h"
#include "nibble/engine/open_model.h"
#include "nibble/engine/perplexity.h"
#include "nibble/engine/scheme.h"
#include "nibble/engine/score.h"
#include "nibble/hardware/machine_info.h"
#include "nibble/tokenizer/tokenizer.h"

namespace nibble {
namespace {

constexpr uint64_t kMostText = uint64_t{1} << 30;

using Windows = std::vector<std::vector<TokenId>>;

bool holds_tokens(const std::string& file) { return ends_with(file, ".jsonl"); }

// One array of token ids a line.
Windows read_token_lists(const std::string& file) {
  Windows windows;
  for_lines(file, [&](std::string_view line) {
    const std::string where = fmt::format("{}, line {}", file, windows.size() + 1);
    const Json ids = parse_json(line, where);
    windows.emplace_back();
    if (ids.is_array()) {
      for (const Json& id : ids) {
        // What is no id of any vocabulary ends the list, and with it the line.
        if (!id.is_number_unsigned() || id.get<uint64_t>() > std::numeric_limits<TokenId>::max()) break;
        windows.back().push_back(id.get<TokenId>());
      }
    }
    if (!ids.is_array() || ids.size() < 2 || windows.back().size() != ids.size()) {
      throw Error("a line is no list of at least two token ids").file(where).way_out("write [ID,ID,…] on each line");
    }
  });
  if (windows.empty()) throw Error("no list of token ids is there").file(file).way_out("write [ID,ID,…] on each line");
  return windows;
}

Windows read_windows(const BenchPerplexityArgs& args) {
  if (holds_tokens(args.file)) return read_token_lists(args.file);
  const std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(args.model);
  const std::vector<TokenId>& prefix = tokenizer->prefix();
  const std::optional<TokenId> begin = prefix.size() == 1 ? std::optional(prefix.front()) : std::nullopt;
  return text_windows(tokenizer->encode(read_text(args.file, kMostText)), args.context, begin);
}

std::string line_of(const TokenScore& score) {
  return Json{{"window", score.window},         {"position", score.position}, {"token", score.token},
              {"logit", score.logit},           {"nll", score.nll},           {"best", score.best},
              {"best_logit", score.best_logit}, {"second", score.second},     {"second_logit", score.second_logit},
              {"counted", score.counted}}
             .dump() +
         "\n";
}

// Where every token's score goes; nowhere if no file was asked for.
class ScoreFile {
 public:
  explicit ScoreFile(const std::string& path) {
    if (!path.empty()) file_ = std::make_unique<TextFile>(path);
  }
  TokenSink sink() {
    if (file_ == nullptr) return {};
    return [this](const TokenScore& score) { file_->add(line_of(score)); };
  }
  void commit() {
    if (file_ != nullptr) file_->commit();
  }

 private:
  std::unique_ptr<TextFile> file_;
};

// Memory that the pass will take: all weights, or one layer beside the states of all tokens.
uint64_t needed_bytes(const BenchPerplexityArgs& args, const OpenedModel& opened, const Windows& windows) {
  if (!args.stream) return resident_bytes(opened.checkpoint, opened.model);
  uint64_t tokens = 0;
  for (const std::vector<TokenId>& window : windows) tokens += window.size();
  return largest_layer_bytes(opened.checkpoint, opened.model) + tokens * opened.model.spec.hidden * sizeof(float);
}

void run_model(const BenchPerplexityArgs& args, const CommonOptions& common, const OpenedModel& opened,
               const Windows& windows, PerplexityMeter* meter) {
  ThreadPool pool(common.thread_count());
  EngineOptions options;
  options.arithmetic = arithmetics_of_scheme(args.scheme);
  options.cache = cache_element_of(args.kv);
  if (!args.stream) {
    Engine engine(opened.checkpoint, opened.model, options, &pool);
    run_windows(&engine, windows, meter);
    return;
  }
  score(opened.checkpoint, opened.model, options, windows, &pool,
        [&](uint64_t window, uint64_t first, uint64_t count, std::span<const float> logits) {
          meter->add(window, first, count, logits);
        });
}

}  // namespace

int run_bench_perplexity(const BenchPerplexityArgs& args, const CommonOptions& common) {
  if (args.model.empty()) throw UsageError(Error("no model is named").way_out("--model MODEL"));
  const OpenedModel opened = open_model(args.model, common.thread_count());
  const Windows windows = read_windows(args);
  for (const std::vector<TokenId>& window : windows) check_tokens(opened.model.spec, window);
  const uint64_t needed = needed_bytes(args, opened, windows);
  check_memory(args.model, needed, machine_info().available_bytes);
  ScoreFile file(args.per_token);
  PerplexityMeter meter(windows, holds_tokens(args.file), file.sink());
  const Stopwatch watch;
  run_model(args, common, opened, windows, &meter);
  file.commit();
  const Perplexity result = meter.result();
  const double seconds = watch.seconds();
  if (common.json) {
    print_json(Json{{"perplexity", result.perplexity()},
                    {"mean_nll", result.mean_nll},
                    {"standard_error", result.standard_error},
                    {"windows", result.windows},
                    {"tokens", result.tokens},
                    {"context", args.context},
                    {"scheme", args.scheme},
                    {"kv", args.kv},
                    {"streamed", args.stream},
                    {"bytes_held", needed},
                    {"peak_rss_bytes", peak_memory_bytes()},
                    {"seconds", seconds}});
  } else {
    print_out(
        fmt::format("perplexity {:.4f} ({:.4f} nats a token, standard error {:.4f}; {} tokens in {} windows; {}; "
                    "{:.1f} s, peak {})\n",
                    result.perplexity(), result.mean_nll, result.standard_error, result.tokens, result.windows,
                    args.scheme, seconds, human_bytes(peak_memory_bytes())));
  }
  return kExitDone;
}

}  // namespace nibble
