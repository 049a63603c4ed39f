#include "nibble/plan/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nibble/base/checked_math.h"
#include "nibble/base/error.h"
#include "nibble/base/strings.h"
#include "nibble/numerics/cache_types.h"

namespace nibble {
namespace {

// The share of the memory that an engine is told to fill, when it takes `outside` bytes beside that: what is left, less
// a twentieth for the driver and what nobody counts, but never less than what the plan puts inside.
double memory_share(const MemoryPlan& memory, uint64_t outside) {
  const auto capacity = static_cast<double>(memory.capacity);
  const double inside = static_cast<double>(memory.total() - memory.reserve - outside) / capacity;
  const double left = 1 - static_cast<double>(outside) / capacity;
  return std::clamp(std::floor((left - 0.05) * 1000) / 1000, std::min(std::ceil(inside * 1000) / 1000, left), left);
}

// vLLM's share holds all but the captured graphs.
double vllm_share(const MemoryPlan& memory) { return memory_share(memory, memory.graphs); }

// SGLang's share holds weights and cache alone.
double sglang_share(const MemoryPlan& memory) {
  return memory_share(memory, memory.activations + memory.workspace + memory.communication + memory.graphs);
}

// The weights as they lie there, not those that quantize would make of them.
bool is_source(const Plan& plan) {
  const FormatRow& row = plan.rows[plan.detail];
  return row.format == "released" || (plan.detail_is_dense && plan.subject->is_plain());
}

std::string model_of(const Plan& plan) {
  return is_source(plan) ? plan.subject->name : plan.subject->name + "-" + plan.rows[plan.detail].format;
}

std::string comment(const Plan& plan, const char* command) {
  const PlanRequest& request = plan.request;
  const FormatRow& row = plan.rows[plan.detail];
  std::string text = fmt::format("# {}\n# {} on {} x {}: {}, {}\n", command, printable(plan.subject->name), plan.gpus,
                                 plan.device.title, row.title, plan.chosen->layout.name());
  if (!is_source(plan))
    text += fmt::format("# The weights planned for are made by: nibble quantize {} {} --format {}\n",
                        printable(plan.subject->name), model_of(plan), row.format);
  if (!plan.subject->is_folder)
    text += "# `model`: put the folder of the checkpoint, or its name on the hub, in place of this name.\n";
  if (plan.gpus > request.gpus_per_machine)
    text += fmt::format("# {} machines: start it on each, with the engine's own options for the first one's address.\n",
                        ceil_div(plan.gpus, request.gpus_per_machine));
  for (const std::string& note : plan.notes) text += fmt::format("# {}\n", printable(note));
  return text;
}

uint64_t sequences_of(const Plan& plan) {
  return plan.chosen->most_sequences != 0 ? plan.chosen->most_sequences : plan.request.concurrency;
}

// A YAML scalar that no reader takes for anything but a string.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : printable(text)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

CacheType cache_type(const PlanRequest& request) {
  for (const CacheType& type : cache_types()) {
    if (type.element_bytes == request.kv_element_bytes) return type;
  }
  return {};
}

std::string vllm(const Plan& plan) {
  const PlanRequest& request = plan.request;
  const Layout& layout = plan.chosen->layout;
  std::string text = comment(plan, "vllm serve --config FILE");
  text += fmt::format("model: {}\ntensor-parallel-size: {}\n", quoted(model_of(plan)), layout.tp);
  if (layout.pp > 1) text += fmt::format("pipeline-parallel-size: {}\n", layout.pp);
  if (layout.dp > 1) text += fmt::format("data-parallel-size: {}\n", layout.dp);
  if (layout.ep > 1) text += "enable-expert-parallel: true\n";
  text += fmt::format("max-model-len: {}\nmax-num-seqs: {}\nmax-num-batched-tokens: {}\n", request.context,
                      ceil_div(sequences_of(plan), layout.dp), kPrefillChunk);
  text += fmt::format("gpu-memory-utilization: {:.3f}\n", vllm_share(plan.chosen->memory));
  if (const auto type = cache_type(request); !type.vllm.empty()) text += fmt::format("kv-cache-dtype: {}\n", type.vllm);
  if (request.draft != 0 && plan.subject->counts.mtp != 0)
    text +=
        fmt::format("speculative-config: '{{\"method\": \"mtp\", \"num_speculative_tokens\": {}}}'\n", request.draft);
  return text;
}

std::string sglang(const Plan& plan) {
  const PlanRequest& request = plan.request;
  const Layout& layout = plan.chosen->layout;
  std::string text = comment(plan, "python -m sglang.launch_server --config FILE");
  // Its tp-size counts all GPUs of a stage; dp-size of them share out the attention.
  text += fmt::format("model-path: {}\ntp-size: {}\n", quoted(model_of(plan)), layout.stage_gpus());
  if (layout.pp > 1) text += fmt::format("pp-size: {}\n", layout.pp);
  if (layout.dp > 1) text += fmt::format("dp-size: {}\nenable-dp-attention: true\n", layout.dp);
  if (layout.ep > 1) text += fmt::format("ep-size: {}\n", layout.ep);
  if (plan.gpus > request.gpus_per_machine)
    text += fmt::format("nnodes: {}\n", ceil_div(plan.gpus, request.gpus_per_machine));
  // It divides its requests by dp-size, and rounds down.
  text += fmt::format("context-length: {}\nmax-running-requests: {}\nchunked-prefill-size: {}\n", request.context,
                      ceil_div(sequences_of(plan), layout.dp) * layout.dp, kPrefillChunk);
  text += fmt::format("mem-fraction-static: {:.3f}\n", sglang_share(plan.chosen->memory));
  if (const auto type = cache_type(request); !type.sglang.empty())
    text += fmt::format("kv-cache-dtype: {}\n", type.sglang);
  if (request.draft != 0 && plan.subject->counts.mtp != 0)
    text += fmt::format(
        "speculative-algorithm: EAGLE\nspeculative-num-steps: {}\nspeculative-eagle-topk: 1\n"
        "speculative-num-draft-tokens: {}\n",
        request.draft, request.draft + 1);
  return text;
}

}  // namespace

bool can_launch(ServingEngine engine, const Layout& layout, bool has_experts) {
  if (engine == ServingEngine::kNone || !has_experts) return true;
  if (layout.ep == 1) return layout.dp == 1;
  return engine == ServingEngine::kSglang || layout.ep == layout.stage_gpus();
}

std::string launch_config(const Plan& plan, ServingEngine engine) {
  if (!plan.subject)
    throw Error("a launch configuration needs a model").way_out("name a checkpoint instead of --total and --active");
  if (plan.device.kind == DeviceKind::kCpu)
    throw Error("launch configurations are for GPUs")
        .value("device", plan.device.name)
        .way_out("name a GPU with --gpu")
        .way_out("run the same command without --emit");
  if (plan.search.plans.empty() || !plan.chosen)
    throw Error("no layout fits, so there is nothing to launch")
        .way_out("run the same command without --emit: it says what is missing and what would fit");
  return engine == ServingEngine::kVllm ? vllm(plan) : sglang(plan);
}

}  // namespace nibble
