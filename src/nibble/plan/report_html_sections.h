// The sections of report_html.h's page, each empty where the plan has nothing for it.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include "nibble/plan/plan.h"

namespace nibble {

// Tokens a second, as the text report rounds them.
inline uint64_t rounded(double rate) { return rate > 0 ? static_cast<uint64_t>(std::llround(rate)) : 0; }

std::string html_formats(const Plan& plan);
std::string html_memory(const Plan& plan);    // of the fullest GPU
std::string html_decoding(const Plan& plan);  // latency against batch; drafting, an answer, exchange
std::string html_prefill(const Plan& plan);
std::string html_schemes(const Plan& plan);
std::string html_layouts(const Plan& plan);  // found, too large, refused

}  // namespace nibble
