#include "nibble/plan/plan.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "nibble/base/error.h"
#include "nibble/base/file.h"
#include "nibble/cli/commands.h"
#include "nibble/numerics/cache_types.h"
#include "nibble/plan/launch.h"
#include "nibble/plan/report.h"
#include "nibble/plan/report_html.h"

namespace nibble {
namespace {

struct PlanArgs {
  PlanRequest request;
  std::string kv{cache_types().front().name}, target = "latency", emit, html;
};

void add_model(CLI::App& app, PlanArgs* args) {
  PlanRequest& request = args->request;
  app.add_option("model", request.model, "a checkpoint folder or file, a config.json, or a bundled name")
      ->type_name("MODEL");
  const auto count = [&](const char* name, std::optional<double>* to, const char* help) {
    app.add_option(name, *to, help)->check(CLI::Range(1.0, 1e18))->type_name("N");
  };
  count("--total", &request.total, "parameters of a model that has no configuration yet, such as 1e12");
  count("--active", &request.active, "of them, those that one token meets");
  app.add_option("--format", request.formats, "format of the routed experts (of everything, with --total)")
      ->type_name("F");
}

void add_machines(CLI::App& app, PlanArgs* args) {
  PlanRequest& request = args->request;
  app.add_option("--gpu", request.gpu, "a GPU or CPU of the catalog, or a file that `nibble bench --calibrate` wrote")
      ->capture_default_str()
      ->type_name("NAME");
  const CLI::Range many(uint64_t{1}, kMostGpus);
  app.add_option("--gpus", request.gpus, "how many of them (default: as many as the weights take)")
      ->check(many)
      ->type_name("N");
  app.add_option("--gpus-per-machine", request.gpus_per_machine, "GPUs of one machine")
      ->check(many)
      ->capture_default_str()
      ->type_name("N");
  app.add_option("--reserve", request.reserve,
                 "share of a GPU's memory that weights leave free, for the cache and all else")
      ->check(CLI::Range(0.0, 0.99))
      ->capture_default_str()
      ->type_name("SHARE");
  for (const auto& [name, field, help] :
       {std::tuple{"--tp", &PlanRequest::tp, "tensor parallelism over N GPUs"},
        std::tuple{"--ep", &PlanRequest::ep, "experts dealt out over N GPUs"},
        std::tuple{"--pp", &PlanRequest::pp, "N pipeline stages"},
        std::tuple{"--dp", &PlanRequest::dp, "attention copied N times, each for its share of the sequences"}}) {
    app.add_option(name, request.*field, help)->check(many)->type_name("N");
  }
}

void add_load(CLI::App& app, PlanArgs* args) {
  PlanRequest& request = args->request;
  app.add_option("--context", request.context, "tokens of a sequence")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 26))
      ->capture_default_str()
      ->type_name("N");
  app.add_option("--concurrency", request.concurrency, "sequences at a time")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 20))
      ->capture_default_str()
      ->type_name("N");
  app.add_option("--kv", args->kv, "type of the cache")
      ->check(CLI::IsMember(cache_type_names()))
      ->capture_default_str()
      ->type_name("TYPE");
  app.add_option("--target", args->target,
                 "what the search is for: latency at --concurrency, or throughput at what fits")
      ->check(CLI::IsMember({"latency", "throughput"}))
      ->capture_default_str()
      ->type_name("WHAT");
  app.add_option("--draft", request.draft, "tokens drafted a step, verified together")
      ->check(CLI::Range(uint64_t{1}, uint64_t{64}))
      ->type_name("K");
  app.add_option("--answer", request.answer, "tokens of a thinking model's answer, to be timed")
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 26))
      ->capture_default_str()
      ->type_name("N");
  app.add_option("--skew", request.skew, "how unequal experts' popularity is: it falls as 1 / rank^S (0: uniform)")
      ->check(CLI::Range(0.0, 4.0))
      ->capture_default_str()
      ->type_name("S");
}

// What a range check lets through: no number is below or above any other.
void check_finite(const char* option, std::optional<double> number) {
  if (number && !std::isfinite(*number))
    throw UsageError(Error("not a finite number").value(option, *number).way_out("give a plain number"));
}

void check_usage(const PlanRequest& request) {
  check_finite("--total", request.total);
  check_finite("--active", request.active);
  check_finite("--reserve", request.reserve);
  check_finite("--skew", request.skew);
  const bool flat = request.total || request.active;
  if (!request.model.empty() && flat)
    throw UsageError(Error("--total and --active are for models without a configuration")
                         .value("model", request.model)
                         .way_out("leave out either the model or --total and --active"));
  if (request.model.empty() && !(request.total && request.active))
    throw UsageError(Error(flat ? "--total and --active go together" : "no model was named")
                         .way_out("nibble plan kimi-k2.5")
                         .way_out("nibble plan --total 1e12 --active 32e9"));
  if (flat && *request.active > *request.total)
    throw UsageError(Error("more active parameters than there are")
                         .value("total", *request.total)
                         .value("active", *request.active)
                         .way_out("--active counts those that one token meets"));
  if (flat && (request.tp || request.ep || request.pp || request.dp))
    throw UsageError(Error("a layout needs a model's shapes").way_out("name a configuration instead of --total"));
  const uint64_t dp = request.dp.value_or(1);
  const uint64_t product = request.tp.value_or(1) * request.pp.value_or(1) * dp;
  if (product > kMostGpus || request.ep.value_or(1) > kMostGpus)
    throw UsageError(Error("more GPUs than a plan is made for")
                         .value("tp x pp x dp", product)
                         .value("most", kMostGpus)
                         .way_out("plan for one of several equal groups"));
  if (request.gpus != 0 && request.gpus % product != 0)
    throw UsageError(Error("--tp, --pp and --dp do not divide --gpus")
                         .value("gpus", request.gpus)
                         .value("tp x pp x dp", product)
                         .way_out("a layout takes tp x pp x dp GPUs"));
}

int run_plan(PlanArgs& args, const CommonOptions& common) {
  PlanRequest& request = args.request;
  for (const CacheType& type : cache_types()) {
    if (type.name == args.kv) request.kv_element_bytes = type.element_bytes;
  }
  request.target = args.target == "throughput" ? PlanTarget::kThroughput : PlanTarget::kLatency;
  request.engine = args.emit == "vllm"     ? ServingEngine::kVllm
                   : args.emit == "sglang" ? ServingEngine::kSglang
                                           : ServingEngine::kNone;
  check_usage(request);
  const Plan plan = make_plan(request);
  std::string launch;
  if (request.engine != ServingEngine::kNone && plan.fits) launch = launch_config(plan, request.engine);
  // Before anything is printed: a page that cannot be written is an error, not a line after a good answer.
  if (!args.html.empty()) write_atomically(args.html, plan_html(plan));
  if (common.json) {
    Json json = plan_json(plan);
    if (!launch.empty()) json["launch"] = launch;
    print_json(json);
  } else {
    print_out(launch.empty() ? plan_text(plan, !common.quiet) : launch);
  }
  return plan.fits ? kExitDone : kExitRefused;
}

}  // namespace

std::function<int()> setup_plan(CLI::App& app, CommonOptions& common) {
  auto args = std::make_shared<PlanArgs>();
  add_model(app, args.get());
  add_machines(app, args.get());
  add_load(app, args.get());
  app.add_option("--emit", args->emit, "print a launch configuration of the chosen layout instead")
      ->check(CLI::IsMember({"vllm", "sglang"}))
      ->type_name("ENGINE");
  app.add_option("--html", args->html, "write the plan as a page with charts, too: one file, nothing from the network")
      ->check([](const std::string& file) { return std::string(file.empty() ? "no file is named" : ""); })
      ->type_name("FILE");
  app.footer("Example:\n  nibble plan kimi-k2.5 --gpu h200 --gpus 8 --context 32768 --concurrency 64 --html plan.html");
  return [args, &common] { return run_plan(*args, common); };
}

}  // namespace nibble
