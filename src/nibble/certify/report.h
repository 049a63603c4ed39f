// A certificate as a table, JSON (docs/certify.md has the keys) and one page (report_html.h).
#pragma once

#include <string>

#include "nibble/base/json.h"
#include "nibble/certify/certificate.h"

namespace nibble {

std::string certificate_text(const Certificate& certificate);
Json certificate_json(const Certificate& certificate);
// Of one candidate alone, without its curves: for the candidate's nibble.json.
Json certificate_summary(const Certificate& certificate, const CandidateCertificate& candidate);

}  // namespace nibble
