// The report of `nibble plan` as one page: tables and pictures, no scripts, nothing from elsewhere.
#pragma once

#include <string>

#include "nibble/plan/plan.h"

namespace nibble {

// HTML that is well-formed XML, too. The same plan gives the same bytes.
std::string plan_html(const Plan& plan);

}  // namespace nibble
