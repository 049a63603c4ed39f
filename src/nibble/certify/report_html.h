// A certificate as one page: tables, curves and texts, no scripts, nothing from elsewhere.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "nibble/certify/certificate.h"
#include "nibble/certify/chain.h"

namespace nibble {

inline constexpr size_t kForkTexts = 12;  // forks of a candidate that the page shows

// What the page shows beside the figures.
struct CertificateTexts {
  // Ids as text; null where there is no tokenizer, then ids are shown.
  std::function<std::string(std::span<const TokenId>)> decode;
  std::vector<std::string> prompts;  // of each chain; may be empty
};

// HTML that is well-formed XML, too. The same certificate gives the same bytes.
std::string certificate_html(const Certificate& certificate, const std::vector<Chain>& chains,
                             const CertificateTexts& texts);

}  // namespace nibble
