#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "nibble/base/error.h"
#include "nibble/base/table.h"
#include "nibble/cli/commands.h"
#include "nibble/engine/scheme.h"
#include "nibble/hardware/calibrate.h"
#include "nibble/kernels/select.h"
#include "nibble/plan/plan.h"

namespace nibble {
namespace {

constexpr double kCeilingSeconds = 1;

struct KernelsArgs {
  std::string op = "linear", format, device, scheme = "w4a8", forced;
  uint64_t tokens = 1, rows = 4096, cols = 4096;
};

// What a core of this machine's ceiling starts in a cycle, by the widest kernel of the same arithmetic.
double most_macs(ActivationKind kind) {
  double most = 0;
  for (const Kernel* kernel : kernels()) {
    if (kernel->activations == kind && kernel->processor_lacks().empty()) most = std::max(most, kernel->macs_per_cycle);
  }
  return most;
}

// The least time by the roofline: the weights once, or multiply-adds at the kernel's share of the device's peak.
double cost_us(const Kernel& kernel, const WeightLayout& layout, uint64_t tokens, const Device& device) {
  const double peak = kernel.activations == ActivationKind::kInt8   ? device.int8_flops
                      : kernel.activations == ActivationKind::kBF16 ? device.bf16_flops
                                                                    : device.f32_flops;
  const double flops =
      2.0 * static_cast<double>(layout.n) * static_cast<double>(layout.k) * static_cast<double>(tokens);
  const double share = std::min(1.0, kernel.macs_per_cycle / most_macs(kernel.activations));
  const double reading = static_cast<double>(layout.bytes()) / device.memory_bandwidth;
  return 1e6 * std::max(reading, peak > 0 ? flops / (peak * share) : 0);
}

std::string_view verdict_name(Verdict verdict) {
  return verdict == Verdict::kChosen ? "chosen" : verdict == Verdict::kOk ? "ok" : "no";
}

Device device_of(const KernelsArgs& args, const CommonOptions& common) {
  if (!args.device.empty()) return load_device(args.device);
  CalibrateOptions options;
  options.seconds = kCeilingSeconds;
  options.threads = common.thread_count();
  return calibrate(options, [](std::string_view) {});
}

int run_kernels(const KernelsArgs& args, const CommonOptions& common) {
  const LayoutChoice choice = choose_layout(parse_format(args.format), args.rows, args.cols);
  if (!choice.layout) {
    throw Error("no kernel multiplies this format: " + choice.obstacle)
        .value("format", args.format)
        .way_out("nibble quantize converts it");
  }
  const Device device = device_of(args, common);
  if (device.kind != DeviceKind::kCpu) {
    throw Error("this release has kernels for processors alone")
        .value("device", device.name)
        .way_out("leave out --device for this machine");
  }
  const Arithmetics how = arithmetics_of_scheme(args.scheme);
  const ActivationKind kind = activations_of(*choice.layout, how.integer_activations, how.rounding);
  Json rows = Json::array();
  std::vector<std::vector<std::string>> cells{{"kernel", "activations", "verdict", "least us", "why"}};
  bool chosen = false;
  for (const Candidate& candidate : candidates(*choice.layout, kind, args.forced, args.tokens)) {
    const bool runs = candidate.verdict != Verdict::kNo;
    chosen = chosen || candidate.verdict == Verdict::kChosen;
    const double cost = runs ? cost_us(*candidate.kernel, *choice.layout, args.tokens, device) : 0;
    rows.push_back(Json{{"kernel", candidate.kernel->name},
                        {"activations", activation_kind_name(candidate.kernel->activations)},
                        {"verdict", verdict_name(candidate.verdict)},
                        {"reason", candidate.reason},
                        {"cost_us", runs ? Json(cost) : Json(nullptr)}});
    cells.push_back(
        {std::string(candidate.kernel->name), std::string(activation_kind_name(candidate.kernel->activations)),
         std::string(verdict_name(candidate.verdict)), runs ? fmt::format("{:.1f}", cost) : "-", candidate.reason});
  }
  if (common.json) {
    print_json(Json{{"op", args.op},
                    {"format", args.format},
                    {"tokens", args.tokens},
                    {"rows", args.rows},
                    {"cols", args.cols},
                    {"device", device.title},
                    {"candidates", std::move(rows)}});
  } else {
    print_out(fmt::format("{} x {}, {} tokens, on {}\n", args.rows, args.cols, args.tokens, printable(device.title)) +
              table_text(cells));
  }
  return chosen ? kExitDone : kExitRefused;
}

}  // namespace

std::function<int()> setup_kernels(CLI::App& app, CommonOptions& common) {
  auto args = std::make_shared<KernelsArgs>();
  app.add_option("--op", args->op, "linear: a matrix product; grouped: the same over experts")
      ->check(CLI::IsMember({"linear", "grouped"}))
      ->capture_default_str()
      ->type_name("NAME");
  app.add_option("--format", args->format, "format of the weights")->required()->type_name("F");
  app.add_option("--tokens", args->tokens, "tokens of a product")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 20))
      ->capture_default_str()
      ->type_name("N");
  app.add_option("--rows", args->rows, "outputs of the matrix")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 24))
      ->capture_default_str()
      ->type_name("N");
  app.add_option("--cols", args->cols, "inputs of the matrix")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 24))
      ->capture_default_str()
      ->type_name("K");
  app.add_option("--scheme", args->scheme, engine_schemes_help())
      ->check(CLI::IsMember(engine_scheme_names()))
      ->capture_default_str();
  app.add_option("--kernel", args->forced, "as if kernels of this name had been asked for")->type_name("NAME");
  app.add_option("--device", args->device,
                 "a file that `nibble bench --calibrate` wrote (default: this machine, measured)")
      ->type_name("NAME");
  app.footer(
      fmt::format("Example:\n  nibble kernels --format {} --tokens 512", example_writable_formats().front().name));
  return [args, &common] { return run_kernels(*args, common); };
}

}  // namespace nibble
