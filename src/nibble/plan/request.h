// What is asked of `nibble plan`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace nibble {

// Whose launch configuration is wanted: only layouts that it can be told are considered.
enum class ServingEngine : uint8_t { kNone, kVllm, kSglang };

enum class PlanTarget : uint8_t { kLatency, kThroughput };

// That are asked for, proposed or chosen.
inline constexpr uint64_t kMostGpus = 65536;

struct PlanRequest {
  std::string model;                    // a folder, a file, a bundled name; empty with `total` and `active`
  std::optional<double> total, active;  // parameters
  std::string gpu = "h200";
  uint64_t gpus = 0;  // 0: the fewest of 1, 2, 4 …, whole machines that hold the weights
  uint64_t gpus_per_machine = 8;
  double reserve = 0.30;                   // share of a GPU's memory that weights must leave free
  std::vector<std::string> formats;        // empty: those that the field publishes are compared
  uint64_t context = 32768;                // tokens of a sequence, prompt and answer
  uint64_t concurrency = 8;                // sequences at a time
  uint64_t kv_element_bytes = 2;           // of one of cache_types()
  std::optional<uint64_t> tp, ep, pp, dp;  // any of them: that layout; none: the best one found
  PlanTarget target = PlanTarget::kLatency;
  ServingEngine engine = ServingEngine::kNone;
  uint64_t draft = 0;       // tokens drafted a step
  uint64_t answer = 32000;  // tokens of a thinking model's answer
  double skew = 0;          // exponent of the experts' popularity (ledger/routing.h)
};

}  // namespace nibble
