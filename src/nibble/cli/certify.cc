#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "nibble/base/error.h"
#include "nibble/base/file.h"
#include "nibble/base/log.h"
#include "nibble/base/status_line.h"
#include "nibble/base/text_file.h"
#include "nibble/certify/chain_file.h"
#include "nibble/certify/gate.h"
#include "nibble/certify/record.h"
#include "nibble/certify/report.h"
#include "nibble/certify/report_html.h"
#include "nibble/certify/run.h"
#include "nibble/cli/commands.h"
#include "nibble/engine/scheme.h"
#include "nibble/numerics/cache_types.h"
#include "nibble/tokenizer/tokenizer.h"

namespace nibble {
namespace {

struct CertifyArgs {
  CertifyRequest request;
  std::optional<std::string> gate, write_chains, html;
  bool no_record = false, attribute = false;
  uint64_t places = 64;
};

// Into each candidate's nibble.json; where that cannot be written the certificate is no less true.
void record(const Certificate& certificate) {
  for (const CandidateCertificate& candidate : certificate.candidates) {
    try {
      record_certificate(candidate.path, certificate_summary(certificate, candidate));
    } catch (const Error& error) {
      log::warning(fmt::format("the certificate was not recorded: {}", error.what()));
    }
  }
}

void write_page(const std::string& path, const CertifyArgs& args, const CertifyResult& result) {
  CertificateTexts texts;
  texts.prompts = result.prompt_texts;
  std::shared_ptr<Tokenizer> tokenizer;
  try {
    tokenizer = load_tokenizer(args.request.reference);
  } catch (const Error& error) {
    // Chains of ids need no tokenizer.
    log::info(fmt::format("the page shows token ids: {}", error.what()));
  }
  if (tokenizer)
    texts.decode = [tokenizer](std::span<const TokenId> ids) {
      return decode_tokens(*tokenizer, {ids.begin(), ids.end()});
    };
  write_atomically(path, certificate_html(result.certificate, result.chains, texts));
}

void save_chains(const std::string& path, const std::vector<Chain>& chains) {
  TextFile file(path);
  for (const Chain& chain : chains) file.add(chain_line(chain));
  file.commit();
}

// Lines for the bounds that do not hold, of all candidates.
std::vector<std::string> gate_failures(const std::vector<GateBound>& bounds, const Certificate& certificate) {
  std::vector<std::string> failures;
  for (const CandidateCertificate& candidate : certificate.candidates) {
    for (const std::string& line :
         failed_bounds(bounds, [&](std::string_view name) { return gate_value(candidate, name); })) {
      failures.push_back(fmt::format("{}: {}", candidate.name, line));
    }
  }
  return failures;
}

int run_certify(const CertifyArgs& args, const CommonOptions& common) {
  CertifyRequest request = args.request;
  if (request.chains.has_value() + request.prompts.has_value() + request.task.has_value() > 1) {
    throw UsageError(Error("chains come from one place").way_out("give one of --chains, --prompts and --task"));
  }
  std::vector<GateBound> bounds;
  try {
    if (request.task) make_task(*request.task, 0);
    if (args.gate) bounds = parse_gate(*args.gate, gate_names());
  } catch (const Error& error) {
    throw UsageError(error);
  }
  request.threads = common.thread_count();
  if (args.html) request.fork_texts = kForkTexts;
  if (args.attribute) request.attribution_places = args.places;
  StatusLine status(common.quiet);
  const CertifyResult result = certify(request, [&](std::string_view what) { status.show(what); });
  status.clear();
  if (args.write_chains) save_chains(*args.write_chains, result.chains);
  if (args.html) write_page(*args.html, args, result);
  if (!args.no_record) record(result.certificate);
  const std::vector<std::string> failures = gate_failures(bounds, result.certificate);
  if (common.json) {
    Json object = certificate_json(result.certificate);
    if (args.gate) object["gate"] = {{"bounds", *args.gate}, {"holds", failures.empty()}, {"failures", failures}};
    print_json(object);
  } else {
    print_out(certificate_text(result.certificate));
    for (const std::string& line : failures) print_out(fmt::format("gate: {}\n", line));
  }
  return failures.empty() ? kExitDone : kExitRefused;
}

void add_chain_options(CLI::App& app, CertifyArgs* args) {
  CertifyRequest& request = args->request;
  app.add_option("--chains", request.chains, "chains as token ids, from anywhere (docs/certify.md)")->type_name("FILE");
  app.add_option("--prompts", request.prompts, "prompts that the reference answers; without one the bundled 64")
      ->type_name("FILE");
  app.add_option("--task", request.task, "a checkable task that the models were trained on")
      ->type_name("NAME[:KEY=N,…]");
  app.add_option("--length", request.length, "tokens of an answer, at most")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 20))
      ->capture_default_str()
      ->type_name("N");
  app.add_option("--task-chains", request.task_chains, "chains of a task")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 20))
      ->capture_default_str()
      ->type_name("N");
  app.add_option("--write-chains", args->write_chains, "keep the chains for another run")->type_name("FILE");
}

void add_sampler_options(CLI::App& app, CertifyRequest* request) {
  app.add_option("--temperature", request->sampler.temperature, "0: greedy chains; else sampled, with the same noise")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str()
      ->type_name("X");
  app.add_option("--top-p", request->sampler.top_p)->check(CLI::Range(0.0, 1.0))->capture_default_str()->type_name("X");
  app.add_option("--top-k", request->sampler.top_k)->capture_default_str()->type_name("K");
  app.add_option("--seed", request->sampler.seed, "of the noise that draws, and of a task's chains")
      ->capture_default_str()
      ->type_name("N");
  app.add_option("--resamples", request->bootstrap.resamples, "of the bootstrap behind each band")
      ->check(CLI::Range(uint64_t{0}, uint64_t{100000}))
      ->capture_default_str()
      ->type_name("N");
}

}  // namespace

std::function<int()> setup_certify(CLI::App& app, CommonOptions& common) {
  auto args = std::make_shared<CertifyArgs>();
  CertifyRequest& request = args->request;
  app.add_option("reference", request.reference, "the model that is right by definition")->required()->type_name("REF");
  app.add_option("candidates", request.candidates, "models that were made from it")->required()->type_name("CANDIDATE");
  add_chain_options(app, args.get());
  add_sampler_options(app, &request);
  app.add_option("--scheme", request.scheme, engine_schemes_help())
      ->check(CLI::IsMember(engine_scheme_names()))
      ->capture_default_str();
  std::vector<std::string> noises = engine_scheme_names();
  noises.emplace_back("none");
  app.add_option("--noise", request.noise, "scheme of the reference's other arithmetic path, which measures the noise")
      ->check(CLI::IsMember(noises))
      ->capture_default_str();
  app.add_option("--kv", request.kv, "type of cached keys and values")
      ->check(CLI::IsMember(cache_type_names()))
      ->capture_default_str();
  app.add_option("--kv-scale", request.kv_scale, "of 8-bit keys and values: checkpoint, dynamic or 1")
      ->check(CLI::IsMember({"checkpoint", "dynamic", "1"}));
  app.add_option("--html", args->html, "also as one page with curves and texts")->type_name("FILE");
  app.add_flag("--attribute", args->attribute,
               "name the weights that first divergences come from: one group at a time from the reference");
  app.add_option("--attribute-places", args->places, "first divergences that --attribute tries, drawn with --seed")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 20))
      ->capture_default_str()
      ->type_name("N");
  app.add_flag("--no-record", args->no_record, "leave the candidates' nibble.json alone");
  app.add_option("--gate", args->gate, "bounds that decide the exit code: flip_rate<=0.02,horizon>=256")
      ->type_name("BOUNDS");
  app.footer(
      "Example:\n  nibble certify ./model ./model-low-bit ./model-other-rule --length 512 --html certificate.html");
  return [args, &common] { return run_certify(*args, common); };
}

}  // namespace nibble
