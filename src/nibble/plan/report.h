// Words for a plan. Keys of the JSON object: docs/plan.md.
#pragma once

#include <string>

#include "nibble/base/json.h"
#include "nibble/plan/plan.h"

namespace nibble {

Json plan_json(const Plan& plan);
std::string plan_text(const Plan& plan, bool with_notes = true);

// "1.67 TB" with decimals that keep two digits behind the point from 0.01 TB on; "12.3 GB" below.
std::string terabytes(uint64_t bytes);
// What exchanging the experts' tokens takes, on one machine and on more: a sentence without its end.
std::string exchange_text(const ExchangeTime& exchange);

// "0.47 ms", "12.3 us", "1.9 s".
std::string human_seconds(double seconds);

}  // namespace nibble
