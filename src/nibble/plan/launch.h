// Launch configurations for the engines that serve such checkpoints.
#pragma once

#include <string>

#include "nibble/ledger/layout.h"
#include "nibble/plan/plan.h"

namespace nibble {

// vLLM deals experts out over all GPUs of a stage or cuts them over all; SGLang deals them out over any divisor of
// them. Neither copies experts with the attention.
bool can_launch(ServingEngine engine, const Layout& layout, bool has_experts);

// A YAML file for `vllm serve --config FILE` or `python -m sglang.launch_server --config FILE`, of the plan's layout.
// Error if the plan has none that fits, and for CPUs.
std::string launch_config(const Plan& plan, ServingEngine engine);

}  // namespace nibble
