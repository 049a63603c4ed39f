#include "nibble/certify/certificate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "nibble/base/rng.h"
#include "nibble/certify/report.h"
#include "nibble/certify/report_html.h"

namespace nibble {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr TokenId kEnd = 9;

// Chains whose candidate leaves at these choices; -1: never.
struct Made {
  std::vector<Chain> chains;
  std::vector<JudgedChain> judged;
};

Made made_of(const std::vector<std::pair<uint64_t, int>>& lengths_and_flips) {
  Made made;
  for (const auto& [length, flip] : lengths_and_flips) {
    Chain chain{.prompt = {1}, .answer = {}, .cluster = made.chains.size()};
    JudgedChain judged;
    for (uint64_t i = 0; i < length; ++i) {
      const TokenId token = i + 1 == length ? kEnd : 2;
      chain.answer.push_back(token);
      const bool flips = flip >= 0 && i >= static_cast<uint64_t>(flip);
      judged.push_back(
          {.token = token, .reference = token, .candidate = flips ? 3 : token, .margin = 1, .kl = flips ? 2.0F : 0.5F});
    }
    made.chains.push_back(chain);
    made.judged.push_back(judged);
  }
  return made;
}

CandidateCertificate certified(const Made& made, double noise = 0) {
  return certify_candidate(made.chains, made.judged, std::vector<TokenId>{kEnd}, noise, {.resamples = 200});
}

TEST(Certificate, counts_and_curves_of_four_chains) {
  // Ten tokens each: two kept whole, one left at 4, one at its end token.
  const CandidateCertificate c = certified(made_of({{10, -1}, {10, 4}, {10, -1}, {10, 9}}));
  EXPECT_EQ(c.chains, 4U);
  EXPECT_EQ(c.whole, 2U);
  EXPECT_EQ(c.forked, 1U);
  EXPECT_EQ(c.ran_on, 1U);
  EXPECT_EQ(c.totals.tokens, 40U);
  EXPECT_EQ(c.totals.flips, 7U);
  // Nothing is censored: incidence is the plain share.
  EXPECT_DOUBLE_EQ(c.incidence.back().value, 0.5);
  EXPECT_EQ(c.incidence.front().time, 5U);
  EXPECT_DOUBLE_EQ(c.incidence.front().value, 0.25);
  EXPECT_NEAR(c.implied.tokens, std::log(0.5) / std::log(1 - 7.0 / 40), 1e-9);
  ASSERT_EQ(c.forks.size(), 2U);
  EXPECT_EQ(c.forks[0].position, 4U);
  EXPECT_EQ(c.forks[0].kl_behind, 2);
  EXPECT_EQ(c.forks[1].kl_behind, 0);  // nothing behind
}

TEST(Certificate, equal_lengths_are_one_class_and_others_quarters) {
  EXPECT_EQ(certified(made_of({{10, -1}, {10, 4}, {10, -1}})).by_length.size(), 1U);
  const CandidateCertificate c =
      certified(made_of({{4, -1}, {3, 1}, {2, -1}, {1, 0}, {5, -1}, {6, 2}, {7, -1}, {8, -1}}));
  ASSERT_EQ(c.by_length.size(), 4U);
  EXPECT_EQ(c.by_length[0].shortest, 1U);
  EXPECT_EQ(c.by_length[0].longest, 2U);
  EXPECT_EQ(c.by_length[3].longest, 8U);
  EXPECT_DOUBLE_EQ(c.by_length[3].survival.back().value, 1);
}

TEST(Certificate, horizons_that_differ_are_explained) {
  // All flips in one long chain: the rate implies a short horizon, yet most answers stay.
  const CandidateCertificate late = certified(made_of({{100, 0}, {100, -1}, {100, -1}, {100, -1}}));
  EXPECT_FALSE(late.measured.has_value());
  EXPECT_THAT(late.why_they_differ, HasSubstr("clusters"));
  Made early = made_of({{100, -1}, {100, -1}, {100, -1}, {100, -1}});
  for (JudgedChain& chain : early.judged) chain[2].candidate = 3;  // each leaves at once, and flips never again
  EXPECT_THAT(certified(early).why_they_differ, HasSubstr("at the start"));
}

TEST(Certificate, gates_read_what_the_report_says) {
  const CandidateCertificate c = certified(made_of({{10, -1}, {10, 4}, {10, 4}, {10, 9}}));
  EXPECT_THAT(gate_names(), Contains("flip_rate"));
  EXPECT_DOUBLE_EQ(*gate_value(c, "flip_rate"), 13.0 / 40);
  EXPECT_DOUBLE_EQ(*gate_value(c, "whole"), 0.25);
  EXPECT_DOUBLE_EQ(*gate_value(c, "horizon"), 5);  // half have left after the fifth choice
  EXPECT_EQ(gate_value(c, "single_step"), std::nullopt);
  EXPECT_DOUBLE_EQ(*gate_value(certified(made_of({{10, -1}})), "horizon"), 10);  // watched so long
}

Certificate whole_of(const Made& made) {
  Certificate certificate;
  certificate.reference = "the <reference>";
  certificate.chains_from = "a test";
  certificate.scheme = "w4a16";
  certificate.kv = "bf16";
  certificate.kv_scale = "none";
  describe_chains(made.chains, &certificate);
  certificate.candidates.push_back(certified(made));
  certificate.candidates.back().name = "int4 & more";
  return certificate;
}

TEST(CertificateReport, promised_keys) {
  const Json json = certificate_json(whole_of(made_of({{10, -1}, {10, 4}, {7, -1}})));
  const Json& c = json.at("candidates").at(0);
  EXPECT_EQ(c.at("tokens"), 27);
  EXPECT_EQ(c.at("flips"), 6);
  EXPECT_EQ(c.at("first_divergence"), Json::parse("[null, 4, null]"));
  EXPECT_EQ(c.at("incidence").at(0).size(), 4U);
  EXPECT_EQ(c.at("incidence").at(0).at(0), 5);
  EXPECT_TRUE(c.at("horizon").at("measured").is_null());
  for (const char* key : {"name", "flip_rate", "whole", "survival", "noise", "kl_mean"})
    EXPECT_TRUE(c.contains(key)) << key;
  EXPECT_EQ(json.at("length").at("shortest"), 7);
}

TEST(CertificateReport, the_summary_has_the_figures_and_no_curves) {
  const Certificate certificate = whole_of(made_of({{10, -1}, {10, 4}, {7, -1}}));
  const Json summary = certificate_summary(certificate, certificate.candidates[0]);
  EXPECT_EQ(summary.at("flips"), 6);
  EXPECT_EQ(summary.at("reference"), "the <reference>");
  EXPECT_EQ(summary.at("scheme"), "w4a16");
  for (const char* key : {"incidence", "survival", "first_divergence", "path"})
    EXPECT_FALSE(summary.contains(key)) << key;
}

TEST(CertificateReport, the_page_is_whole_and_names_stay_text) {
  const Made made = made_of({{10, -1}, {10, 4}, {7, -1}});
  const Certificate certificate = whole_of(made);
  const std::string page = certificate_html(certificate, made.chains, {});
  EXPECT_THAT(page, HasSubstr("the &lt;reference&gt;"));
  EXPECT_THAT(page, HasSubstr("int4 &amp; more"));
  for (const char* part : {"id=\"incidence\"", "id=\"survival\"", "id=\"forks\"", "1 · 4"})
    EXPECT_THAT(page, HasSubstr(part));
  EXPECT_EQ(page, certificate_html(certificate, made.chains, {}));
  EXPECT_EQ(page.find("http://"), std::string::npos);
}

}  // namespace
}  // namespace nibble
