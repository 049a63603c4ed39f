// The sections of report_html.h's page, each empty where the certificate has nothing for it.
#pragma once

#include <string>

#include "nibble/certify/report_html.h"

namespace nibble {

std::string horizon_words(const CandidateCertificate& candidate);  // "148 tokens", "more than 512"

std::string html_choices(const Certificate& certificate);  // the table of candidates
std::string html_curves(const Certificate& certificate);   // incidence, survival, by length of the answer
std::string html_hazard(const Certificate& certificate);
std::string html_tasks(const Certificate& certificate);        // checkable chains
std::string html_attribution(const Certificate& certificate);  // groups of weights, by what they heal
// Where answers part: words, margins, what follows.
std::string html_forks(const Certificate& certificate, const std::vector<Chain>& chains, const CertificateTexts& texts);

}  // namespace nibble
