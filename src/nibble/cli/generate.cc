#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "nibble/base/error.h"
#include "nibble/base/log.h"
#include "nibble/base/strings.h"
#include "nibble/chat/conversation.h"
#include "nibble/cli/commands.h"
#include "nibble/engine/end_tokens.h"
#include "nibble/engine/generate.h"
#include "nibble/engine/kernel_use.h"
#include "nibble/engine/kv/stored_scales.h"
#include "nibble/engine/memory_check.h"
#include "nibble/engine/open_model.h"
#include "nibble/engine/scheme.h"
#include "nibble/hardware/calibrate.h"
#include "nibble/hardware/machine_info.h"
#include "nibble/ledger/param_counts.h"
#include "nibble/models/stacked_inventory.h"
#include "nibble/numerics/cache_types.h"
#include "nibble/tokenizer/tokenizer.h"

namespace nibble {
namespace {

constexpr double kCeilingSeconds = 1;

struct GenerateArgs {
  std::string model, scheme = "w4a16", kv{cache_types().front().name};
  std::optional<std::string> prompt, tokens, chat, kv_scale;
  GenerateOptions options;
  uint64_t experts = 0;
  bool ignore_end = false;
};

std::vector<TokenId> parse_tokens(const std::string& list) {
  std::vector<TokenId> ids;
  for (const std::string_view word : split(list, ',')) {
    TokenId id = 0;
    const auto [rest, code] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (word.empty() || code != std::errc() || rest != word.data() + word.size()) {
      throw UsageError(
          Error("a token id is not a whole number").value("id", std::string(word)).way_out("--tokens 1,2,3"));
    }
    ids.push_back(id);
  }
  return ids;
}

EngineOptions engine_options(const GenerateArgs& args) {
  EngineOptions options;
  options.experts_per_token = args.experts;
  options.arithmetic = arithmetics_of_scheme(args.scheme);
  options.cache = cache_element_of(args.kv);
  return options;
}

// The conversation as the model's own template writes it.
std::vector<TextSpan> chat_prompt(const GenerateArgs& args) {
  const Json conversation = read_conversation(*args.chat);
  const ModelTemplate found = find_chat_template(args.model, !conversation.at("tools").is_null());
  const ChatTemplate chat = ChatTemplate::parse(found.source, found.name);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return render_conversation(chat, found, conversation,
                             {std::chrono::duration_cast<std::chrono::seconds>(now).count()});
}

std::vector<TokenId> encode_prompt(const GenerateArgs& args, const Tokenizer* tokenizer) {
  if (args.tokens) return parse_tokens(*args.tokens);
  if (args.chat) return tokenizer->encode_spans(chat_prompt(args));
  std::vector<TokenId> ids = tokenizer->encode(args.prompt.value_or(""));
  ids.insert(ids.begin(), tokenizer->prefix().begin(), tokenizer->prefix().end());
  return ids;
}

// What the figures are measured against: this machine, just now.
struct Figures {
  Device machine;
  double active_flops = 0;  // of one token's matrix products
  bool int8 = false;

  double prefill_percent(const Phase& phase) const {
    const double peak = int8 ? machine.int8_flops : machine.f32_flops;
    const double least = static_cast<double>(phase.tokens) * active_flops / peak;
    return phase.seconds > 0 ? 100 * least / phase.seconds : 0;
  }
  double bytes_per_token(const Phase& phase) const {
    return phase.tokens == 0
               ? 0
               : static_cast<double>(phase.weight_bytes + phase.cache_bytes) / static_cast<double>(phase.tokens);
  }
  double decode_percent(const Phase& phase) const {
    const double least = static_cast<double>(phase.tokens) * bytes_per_token(phase) / machine.memory_bandwidth;
    return phase.seconds > 0 ? 100 * least / phase.seconds : 0;
  }
};

Figures measure(const Model& model, const GenerateArgs& args, int threads) {
  Figures figures;
  CalibrateOptions options;
  options.seconds = kCeilingSeconds;
  options.threads = threads;
  figures.machine = calibrate(options, [](std::string_view) {});
  figures.int8 = arithmetics_of_scheme(args.scheme).integer_activations == ActivationKind::kInt8;
  const std::vector<ParamSpec> params = stacked_inventory(*model.family, model.spec);
  figures.active_flops = 2 * static_cast<double>(count_params(model.spec, params).active);
  return figures;
}

Json kernels_json(const std::vector<KernelUse>& uses) {
  Json rows = Json::array();
  for (const KernelUse& use : uses) {
    rows.push_back({{"kernel", use.kernel},
                    {"weights", use.weights},
                    {"activations", use.activations},
                    {"matrices", use.matrices},
                    {"bytes", use.bytes}});
  }
  return rows;
}

Json result_json(const Generated& result, const Figures& figures, const GenerateArgs& args,
                 const std::string& cache_scales, const std::vector<KernelUse>& kernels) {
  return Json{{"prompt_tokens", result.prefill.tokens},
              {"tokens", result.tokens},
              {"text", result.text},
              {"finish", finish_name(result.finish)},
              {"kv", {{"type", args.kv}, {"scale", cache_scales}}},
              {"kernels", kernels_json(kernels)},
              {"memory_gb_per_s", figures.machine.memory_bandwidth / 1e9},
              {"prefill",
               {{"tokens_per_s", result.prefill.tokens_per_second()},
                {"seconds", result.prefill.seconds},
                {"percent_of_ceiling", figures.prefill_percent(result.prefill)}}},
              {"decode",
               {{"tokens_per_s", result.decode.tokens_per_second()},
                {"seconds", result.decode.seconds},
                {"bytes_per_token", figures.bytes_per_token(result.decode)},
                {"gb_per_s", figures.bytes_per_token(result.decode) * result.decode.tokens_per_second() / 1e9},
                {"percent_of_floor", figures.decode_percent(result.decode)}}}};
}

std::string summary(const Generated& result, const Figures& figures, const std::string& scheme) {
  std::string text =
      fmt::format("{}: prompt {} tokens, {:.1f} a second ({:.0f} % of arithmetic's ceiling)", scheme,
                  result.prefill.tokens, result.prefill.tokens_per_second(), figures.prefill_percent(result.prefill));
  if (result.decode.tokens == 0) return text;
  const double bytes = figures.bytes_per_token(result.decode);
  return text + fmt::format("; answer {} tokens, {:.2f} a second: {} a token, {:.1f} of {:.1f} GB/s ({:.0f} %); {}",
                            result.tokens.size(), result.decode.tokens_per_second(),
                            human_bytes(static_cast<uint64_t>(bytes)), bytes * result.decode.tokens_per_second() / 1e9,
                            figures.machine.memory_bandwidth / 1e9, figures.decode_percent(result.decode),
                            finish_name(result.finish));
}

int run_generate(GenerateArgs args, const CommonOptions& common) {
  if (args.prompt.has_value() + args.tokens.has_value() + args.chat.has_value() != 1) {
    throw UsageError(
        Error("a prompt is needed, once").way_out("-p TEXT").way_out("--chat FILE").way_out("--tokens ID,ID,…"));
  }
  const auto [checkpoint, model] = open_model(args.model, common.thread_count());
  check_experts(model.spec, args.experts);
  std::unique_ptr<Tokenizer> tokenizer;
  // Token ids need no tokenizer; text does.
  if (!args.tokens || !args.options.stop_texts.empty()) tokenizer = load_tokenizer(args.model);
  const std::vector<TokenId> prompt = encode_prompt(args, tokenizer.get());
  check_length(model.spec, prompt.size(), args.options.tokens);
  check_tokens(model.spec, prompt);
  EngineOptions options = engine_options(args);
  const ChosenCacheScales chosen = choose_cache_scales(args.kv_scale, options.cache, args.model, checkpoint, model);
  const std::string& cache_scales = chosen.name;
  options.cache_scales = chosen.scales;
  if (!common.quiet && cache_scales != "none") {
    log::info(fmt::format("keys and values in {}, scales: {}", args.kv, cache_scales));
  }
  check_memory(args.model, resident_bytes(checkpoint, model), machine_info().available_bytes);
  if (!args.ignore_end) args.options.end_tokens = end_tokens(checkpoint);
  Generated result;
  std::vector<KernelUse> kernels;
  {  // The weights are gone before the machine is measured, which takes memory of its own.
    ThreadPool pool(common.thread_count());
    Engine engine(checkpoint, model, options, &pool);
    kernels = kernel_uses(engine);
    result = generate(&engine, tokenizer.get(), prompt, args.options, [&](std::string_view text) {
      if (!common.json) print_out(std::string(text));
    });
  }
  const Figures figures = measure(model, args, common.thread_count());
  if (common.json) {
    print_json(result_json(result, figures, args, cache_scales, kernels));
  } else {
    if (tokenizer == nullptr) print_out(fmt::format("{}", fmt::join(result.tokens, ",")));
    print_out("\n");
    if (!common.quiet) {
      log::info(summary(result, figures, args.scheme));
      log::info(kernel_line(kernels));
    }
  }
  return result.finish == Finish::kNotANumber ? kExitRefused : kExitDone;
}

void add_sampling(CLI::App& app, GenerateArgs* args) {
  SamplerOptions& sampler = args->options.sampler;
  app.add_option("-n", args->options.tokens, "at most so many tokens")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 24))
      ->capture_default_str()
      ->type_name("N");
  app.add_option("--temperature", sampler.temperature, "0: the most probable token each time")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str()
      ->type_name("X");
  app.add_option("--top-p", sampler.top_p, "draw from the fewest tokens that have this share of the probability")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str()
      ->type_name("X");
  app.add_option("--top-k", sampler.top_k, "draw from so many tokens; 0: all")->capture_default_str()->type_name("K");
  app.add_option("--seed", sampler.seed, "of the noise that draws: the same seed, the same answer")
      ->capture_default_str()
      ->type_name("N");
  app.add_option("--stop", args->options.stop_texts, "texts that end the answer where they begin")->type_name("TEXT");
  app.add_flag("--ignore-end", args->ignore_end, "go on behind the model's own end token");
}

}  // namespace

std::function<int()> setup_generate(CLI::App& app, CommonOptions& common) {
  auto args = std::make_shared<GenerateArgs>();
  app.add_option("model", args->model, "a checkpoint folder, a .safetensors or a .gguf file")
      ->required()
      ->type_name("MODEL");
  app.add_option("-p", args->prompt, "the prompt, as plain text")->type_name("TEXT");
  app.add_option("--chat", args->chat, "a conversation in JSON: messages, or an object with messages, tools, …")
      ->type_name("FILE");
  app.add_option("--tokens", args->tokens, "the prompt, as token ids")->type_name("ID,ID,…");
  add_sampling(app, args.get());
  app.add_option("--experts-per-token", args->experts, "instead of the model's own number")->type_name("K");
  app.add_option("--scheme", args->scheme, engine_schemes_help())
      ->check(CLI::IsMember(engine_scheme_names()))
      ->capture_default_str();
  app.add_option("--kv", args->kv, "type of cached keys and values")
      ->check(CLI::IsMember(cache_type_names()))
      ->capture_default_str();
  app.add_option("--kv-scale", args->kv_scale,
                 "of 8-bit keys and values: checkpoint (its own; the default where it has them), dynamic (each token's "
                 "own), or 1")
      ->check(CLI::IsMember({"checkpoint", "dynamic", "1"}));
  app.footer("Example:\n  nibble generate ./SmolLM2-135M-Instruct -p \"The capital of France is\" -n 32");
  return [args, &common] { return run_generate(*args, common); };
}

}  // namespace nibble
