// Any JSON as the config.json of a model to plan for: an Error, or a plan whose terms add up and that can be worded.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>

#include "nibble/base/check.h"
#include "nibble/base/error.h"
#include "nibble/base/json.h"
#include "nibble/plan/plan.h"
#include "nibble/plan/report.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const nibble::Json config = nibble::parse_json({reinterpret_cast<const char*>(data), size}, "config.json");
    const auto subject = std::make_shared<const nibble::Subject>(nibble::config_subject(config, "config.json"));
    // More layers take longer than a fuzzer has for one input, and nothing else.
    if (subject->spec.layers.size() > 128) return 0;
    nibble::PlanRequest request;
    request.gpus = 8;
    request.draft = 2;
    request.formats = {"int4-g32"};
    const nibble::Plan plan = nibble::make_plan(request, subject);
    if (plan.chosen) {
      const nibble::MemoryPlan& memory = plan.chosen->memory;
      NIBBLE_CHECK(memory.total() >= memory.weights && memory.fits() == (memory.total() <= memory.capacity));
      NIBBLE_CHECK(plan.chosen->step.total() > 0);
    }
    NIBBLE_CHECK(!nibble::plan_text(plan).empty() && plan_json(plan).contains("fits"));
  } catch (const nibble::Error& error) {
    NIBBLE_CHECK(!error.message().empty());
  }
  return 0;
}
