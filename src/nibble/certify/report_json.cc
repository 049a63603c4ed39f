#include <cmath>
#include <nlohmann/json.hpp>

#include "nibble/certify/report.h"
#include "nibble/certify/report_json_attribution.h"

namespace nibble {
namespace {

Json curve_json(const Curve& curve) {
  Json points = Json::array();
  for (const CurvePoint& point : curve) points.push_back({point.time, point.value, point.low, point.high});
  return points;
}

Json task_json(const TaskScore& score) {
  return {{"chains", score.chains},
          {"steps", score.steps},
          {"single_step", score.single_step},
          {"standard_error", score.standard_error},
          {"mean_run", score.mean_run},
          {"whole", score.whole_share},
          {"whole_band", {score.whole_band.low, score.whole_band.high}},
          {"whole_of_complete", score.whole_share_of_complete},
          {"truncated", score.truncated},
          {"truncated_right_as_far", score.right_as_far},
          {"contexts", score.contexts},
          {"end_contexts", score.end_contexts},
          {"cycles", score.cycles},
          {"independent_prediction", score.independent_prediction}};
}

Json noise_json(const Certificate& certificate) {
  if (!certificate.noise) return nullptr;
  return {{"scheme", certificate.noise_scheme},
          {"largest", certificate.noise->largest},
          {"p99", certificate.noise->p99},
          {"tokens", certificate.noise->tokens},
          {"flips", certificate.noise->flips}};
}

Json horizon_json(const CandidateCertificate& c) {
  Json horizon = {
      {"measured", nullptr}, {"implied", c.implied.tokens}, {"implied_is_a_lower_bound", c.implied.at_least}};
  if (c.measured) horizon["measured"] = *c.measured;
  if (!c.why_they_differ.empty()) horizon["why_they_differ"] = c.why_they_differ;
  return horizon;
}

Json forks_json(const CandidateCertificate& c) {
  Json forks = Json::array();
  for (const Fork& fork : c.forks) {
    forks.push_back({{"chain", fork.chain},
                     {"position", fork.position},
                     {"kind", divergence_kind_name(fork.kind)},
                     {"token", fork.token},
                     {"reference", fork.reference},
                     {"candidate", fork.candidate},
                     {"margin", fork.margin},
                     {"within_noise", fork.within_noise},
                     {"kl", fork.kl},
                     {"kl_behind", fork.kl_behind},
                     {"candidate_p", fork.candidate_p}});
  }
  return forks;
}

// What stands in the summary too.
Json figures_json(const Certificate& certificate, const CandidateCertificate& c) {
  const auto share = [&](uint64_t n) {
    return c.chains == 0 ? 0 : static_cast<double>(n) / static_cast<double>(c.chains);
  };
  Json figures = {{"name", c.name},
                  {"path", c.path},
                  {"tokens", c.totals.tokens},
                  {"flips", c.totals.flips},
                  {"flip_rate", c.totals.flip_rate()},
                  {"flips_within_noise", c.totals.flips_within_noise},
                  {"reference_flips", c.totals.reference_flips},
                  {"whole", share(c.whole)},
                  {"forked", c.forked},
                  {"stopped_early", c.stopped_early},
                  {"ran_on", c.ran_on},
                  {"noise", noise_json(certificate)},
                  {"horizon", horizon_json(c)},
                  {"kl_mean", c.totals.kl_mean},
                  {"kl_median", c.totals.kl_median},
                  {"kl_p99", c.totals.kl_p99},
                  {"kl_max", c.totals.kl_max},
                  {"log_p_mean_difference", c.totals.log_p_mean_difference}};
  if (c.task) figures["checkable"] = task_json(*c.task);
  if (c.attribution) {
    figures["attribution"] = attribution_json(*c.attribution);
    figures["attribution_basis"] = attribution_basis_json(*c.attribution);
  }
  return figures;
}

Json candidate_json(const Certificate& certificate, const CandidateCertificate& c) {
  Json object = figures_json(certificate, c);
  Json first = Json::array();
  for (const ChainDivergence& one : c.divergences) first.push_back(one.first ? Json(*one.first) : Json(nullptr));
  object["first_divergence"] = std::move(first);
  object["incidence"] = curve_json(c.incidence);
  object["survival"] = curve_json(c.survival);
  Json classes = Json::array();
  for (const LengthClass& one : c.by_length) {
    classes.push_back({{"shortest", one.shortest},
                       {"longest", one.longest},
                       {"chains", one.chains},
                       {"survival", curve_json(one.survival)}});
  }
  object["survival_by_length"] = std::move(classes);
  Json hazard = Json::array();
  for (const HazardBin& bin : c.hazard) {
    hazard.push_back({{"from", bin.from},
                      {"to", bin.to},
                      {"choices", bin.choices},
                      {"divergences", bin.divergences},
                      {"hazard", bin.value},
                      {"low", bin.low},
                      {"high", bin.high}});
  }
  object["hazard"] = std::move(hazard);
  object["forks"] = forks_json(c);
  if (c.attribution) object["attribution_cost"] = attribution_cost_json(*c.attribution);
  if (!c.expected_agreement.empty()) object["expected_agreement"] = c.expected_agreement;
  return object;
}

Json setting_json(const Certificate& c) {
  return {{"reference", c.reference},
          {"chains_from", c.chains_from},
          {"chains", c.chains},
          {"tokens", c.tokens},
          {"capped", c.capped},
          {"length", {{"shortest", c.shortest}, {"mean", c.mean_length}, {"longest", c.longest}}},
          {"scheme", c.scheme},
          {"kv", {{"type", c.kv}, {"scale", c.kv_scale}}},
          {"sampler",
           {{"temperature", c.sampler.temperature},
            {"top_p", c.sampler.top_p},
            {"top_k", c.sampler.top_k},
            {"seed", c.sampler.seed}}},
          {"bootstrap", {{"resamples", c.bootstrap.resamples}, {"seed", c.bootstrap.seed}}}};
}

}  // namespace

Json certificate_json(const Certificate& certificate) {
  Json object = setting_json(certificate);
  object["noise"] = noise_json(certificate);
  if (certificate.reference_task) object["reference_checkable"] = task_json(*certificate.reference_task);
  Json candidates = Json::array();
  for (const CandidateCertificate& c : certificate.candidates) candidates.push_back(candidate_json(certificate, c));
  object["candidates"] = std::move(candidates);
  object["seconds"] = certificate.seconds;
  return object;
}

Json certificate_summary(const Certificate& certificate, const CandidateCertificate& candidate) {
  Json object = setting_json(certificate);
  object["reference"] = short_name(certificate.reference);  // folders have other places elsewhere
  const Json figures = figures_json(certificate, candidate);
  for (const auto& [key, value] : figures.items()) {
    if (key != "path" && key != "name") object[key] = value;
  }
  return object;
}

}  // namespace nibble
