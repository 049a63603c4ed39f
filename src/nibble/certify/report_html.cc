#include "nibble/certify/report_html.h"

#include <fmt/format.h>

#include "nibble/base/strings.h"
#include "nibble/certify/report_html_sections.h"
#include "nibble/report/html_parts.h"

namespace nibble {
namespace {

std::string title_of(const Certificate& certificate) {
  return fmt::format("How long {} stays itself", short_name(certificate.reference));
}

std::string lead(const Certificate& c) {
  const std::string text = fmt::format(
      "{} chains of {} to {} tokens ({}), {} tokens in all. Each candidate read them with the reference's own tokens "
      "before "
      "every choice: the first choice that differs is exactly where its own answer would leave.",
      with_commas(c.chains), c.shortest, c.longest, c.chains_from, with_commas(c.tokens));
  return fmt::format("<p class=\"lead\">{}</p>\n", markup(text));
}

std::string best_of(const Certificate& certificate) {
  const CandidateCertificate* best = nullptr;
  for (const CandidateCertificate& c : certificate.candidates) {
    if (best == nullptr || c.totals.flip_rate() < best->totals.flip_rate()) best = &c;
  }
  if (best == nullptr) return "";
  return html_facts("tiles", {{"fewest flips", best->name},
                              {"of its choices", fmt::format("{:.2f} %", 100 * best->totals.flip_rate())},
                              {"half have left after", horizon_words(*best)},
                              {"answers kept whole", fmt::format("{} of {}", best->whole, best->chains)}});
}

std::string setting(const Certificate& c) {
  std::vector<std::pair<std::string, std::string>> facts = {
      {"reference", c.reference},
      {"chains", c.chains_from},
      {"cut by the length limit", fmt::format("{} of {}", c.capped, c.chains)},
      {"scheme", c.scheme},
      {"keys and values", c.kv_scale == "none" ? c.kv : c.kv + ", scales " + c.kv_scale},
      {"choices", c.sampler.temperature <= 0
                      ? std::string("the largest logit")
                      : fmt::format("drawn at temperature {}, top p {}, seed {}; both models with the same noise",
                                    c.sampler.temperature, c.sampler.top_p, c.sampler.seed)},
      {"bands", fmt::format("95 %, bootstrap over prompts, {} resamples", c.bootstrap.resamples)}};
  if (c.noise) {
    facts.emplace_back(
        "noise", fmt::format("the reference with {} arithmetic: {} other choices of {}; margins move by up to {:.2g}",
                             c.noise_scheme, c.noise->flips, with_commas(c.noise->tokens), c.noise->largest));
  }
  return html_section("setting", "How it was measured", html_facts("asked", facts));
}

}  // namespace

std::string horizon_words(const CandidateCertificate& c) {
  if (c.measured) return fmt::format("{} tokens", with_commas(*c.measured));
  return c.survival.empty() ? "–" : fmt::format("more than {}", with_commas(c.survival.back().time));
}

std::string certificate_html(const Certificate& certificate, const std::vector<Chain>& chains,
                             const CertificateTexts& texts) {
  return html_page(title_of(certificate), lead(certificate) + best_of(certificate) + html_choices(certificate) +
                                              html_curves(certificate) + html_hazard(certificate) +
                                              html_tasks(certificate) + html_attribution(certificate) +
                                              html_forks(certificate, chains, texts) + setting(certificate));
}

}  // namespace nibble
