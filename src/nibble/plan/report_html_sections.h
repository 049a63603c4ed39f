// The sections of report_html.h's page, each empty where the plan has nothing for it.
#pragma once

#include <string>

#include "nibble/plan/plan.h"

namespace nibble {

std::string html_formats(const Plan& plan);
std::string html_memory(const Plan& plan);    // of the fullest GPU
std::string html_decoding(const Plan& plan);  // latency against batch; drafting, an answer, exchange
std::string html_prefill(const Plan& plan);
std::string html_schemes(const Plan& plan);
std::string html_layouts(const Plan& plan);  // found, too large, refused

}  // namespace nibble
