#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "nibble/numerics/cache_types.h"
#include "nibble/plan/report.h"

namespace nibble {
namespace {

Json layout_json(const Layout& layout) {
  return {{"name", layout.name()}, {"tp", layout.tp}, {"ep", layout.ep}, {"pp", layout.pp}, {"dp", layout.dp}};
}

Json row_json(const FormatRow& row) {
  if (!row.refused.empty()) return {{"format", row.format}, {"fits", false}, {"refused", row.refused}};
  return {{"format", row.format},
          {"title", row.title},
          {"weight_bytes", row.size.weight_bytes},
          {"active_bytes", row.size.active_bytes},
          {"scale_bytes", row.size.scale_bytes},
          {"scales_percent", row.scales_percent()},
          {"min_gpus", row.min_gpus},
          {"machines", row.machines},
          {"floor_ms_per_token", row.floor_seconds * 1e3},
          {"fits", row.fits}};
}

Json memory_json(const MemoryPlan& memory) {
  Json roles = Json::object();
  for (size_t i = 0; i < memory.by_role.size(); ++i) {
    if (memory.by_role[i] != 0) roles[std::string(role_name(static_cast<Role>(i)))] = memory.by_role[i];
  }
  return {{"weights", memory.weights},
          {"kv", memory.kv},
          {"activations", memory.activations},
          {"workspace", memory.workspace},
          {"communication", memory.communication},
          {"graphs", memory.graphs},
          {"graphs_low", memory.graphs_low},
          {"reserve", memory.reserve},
          {"total", memory.total()},
          {"capacity", memory.capacity},
          {"fits", memory.fits()},
          {"weights_by_role", std::move(roles)},
          {"repack_transient", memory.repack},
          {"largest_stack", memory.largest_stack}};
}

Json step_json(const StepTime& step) {
  return {{"floor_ms", step.floor * 1e3},     {"read_ms", step.read * 1e3},
          {"compute_ms", step.compute * 1e3}, {"exchange_ms", step.exchange * 1e3},
          {"total_ms", step.total() * 1e3},   {"weight_bytes", step.weight_bytes},
          {"kv_bytes", step.kv_bytes},        {"distinct_experts", step.distinct_experts}};
}

Json prediction_json(const Prediction& prediction) {
  Json json{{"floor_ms", prediction.floor * 1e3}};
  if (prediction.high > 0) json["measured_ms"] = {prediction.low * 1e3, prediction.high * 1e3};
  return json;
}

Json decode_json(const Plan& plan) {
  Json points = Json::array();
  for (const DecodePoint& point : plan.decode) {
    Json json{{"batch", point.batch}, {"context", point.context}};
    json.update(step_json(point.step));
    json["tokens_per_s"] = point.tokens_per_second;
    json["fits"] = point.fits;
    points.push_back(std::move(json));
  }
  return points;
}

Json prefill_json(const std::vector<PrefillPoint>& curve) {
  Json points = Json::array();
  for (const PrefillPoint& point : curve) {
    Json json{{"tokens", point.tokens}};
    json.update(step_json(point.time));
    points.push_back(std::move(json));
  }
  return points;
}

Json schemes_json(const SchemePlan& schemes) {
  Json choices = Json::array();
  for (const SchemeChoice& choice : schemes.choices) {
    Json times = Json::array();
    for (const SchemeTime& time : choice.times) {
      Json entry{{"scheme", scheme_name(time.scheme)}};
      if (time.obstacle.empty()) {
        entry["us"] = time.seconds * 1e6;
        if (time.measured.high > 0) entry["measured_us"] = {time.measured.low * 1e6, time.measured.high * 1e6};
        entry["bound"] = time.compute_bound ? "arithmetic" : "memory";
      } else {
        entry["obstacle"] = time.obstacle;
      }
      times.push_back(std::move(entry));
    }
    choices.push_back({{"phase", choice.phase},
                       {"tokens", choice.tokens},
                       {"chosen", scheme_name(choice.chosen)},
                       {"reason", choice.reason},
                       {"schemes", std::move(times)},
                       {"us_8bit", choice.seconds_8bit * 1e6},
                       {"us_16bit", choice.seconds_16bit * 1e6}});
  }
  const auto or_null = [](const std::optional<uint64_t>& tokens) { return tokens ? Json(*tokens) : Json(nullptr); };
  return {{"choices", std::move(choices)},
          {"w4a16_slower_than_8bit_from", or_null(schemes.slower_than_8bit)},
          {"w4a16_slower_than_16bit_from", or_null(schemes.slower_than_16bit)},
          {"w4a16_measured_slower_than_16bit_from", or_null(schemes.measured_slower_than_16bit)}};
}

Json speculation_json(const Speculation& s) {
  Json speedup = Json::array();
  for (const auto& [acceptance, gain] : s.speedup) speedup.push_back({{"acceptance", acceptance}, {"speedup", gain}});
  return {{"drafts", s.drafts},
          {"distinct_experts_before", s.distinct_before},
          {"distinct_experts_after", s.distinct_after},
          {"step_ms", s.step_seconds * 1e3},
          {"verify_ms", s.verify_seconds * 1e3},
          {"draft_ms", s.draft_seconds * 1e3},
          {"break_even_acceptance", s.break_even ? Json(*s.break_even) : Json(nullptr)},
          {"speedup", std::move(speedup)}};
}

// As many as anybody reads; the rest is a number.
constexpr size_t kRefusedListed = 200;

void add_refused(const SearchResult& search, Json* json) {
  Json list = Json::array();
  for (const RefusedLayout& refused : search.refused) {
    if (list.size() >= kRefusedListed) break;
    Json values = Json::object();
    for (const auto& [key, text] : refused.refusal.values) values[key] = text;
    list.push_back({{"layout", layout_json(refused.layout)},
                    {"reason", refused.refusal.reason},
                    {"values", std::move(values)},
                    {"ways_out", refused.refusal.ways_out}});
  }
  for (const LayoutPlan& large : search.too_large) {
    if (list.size() >= kRefusedListed) break;
    list.push_back({{"layout", layout_json(large.layout)},
                    {"reason", fmt::format("needs {} bytes of {} a GPU", large.memory.total(), large.memory.capacity)},
                    {"missing_bytes", large.memory.total() - large.memory.capacity}});
  }
  (*json)["refused_more"] = search.refused.size() + search.too_large.size() - list.size();
  (*json)["refused"] = std::move(list);
}

void add_model(const Plan& plan, Json* json) {
  const Subject& subject = *plan.subject;
  (*json)["family"] = subject.spec.family;
  (*json)["params"] = {{"total", subject.counts.total},
                       {"active", subject.counts.active},
                       {"routed", subject.counts.routed},
                       {"mtp", subject.counts.mtp}};
  const uint64_t bytes = plan.request.kv_element_bytes;
  (*json)["kv"] = {{"bytes_per_token", subject.cache.bytes_per_token(bytes)},
                   {"bytes_per_sequence", subject.cache.bytes_per_sequence(bytes)},
                   {"bytes_of_sequence", subject.cache.bytes(plan.request.context, bytes)},
                   {"context", plan.request.context}};
  for (const CacheType& type : cache_types())
    (*json)["kv"][fmt::format("bytes_per_token_{}", type.name)] = subject.cache.bytes_per_token(type.element_bytes);
  if (plan.chosen) {
    (*json)["layout"] = layout_json(plan.chosen->layout);
    (*json)["per_gpu"] = memory_json(plan.chosen->memory);
    (*json)["step"] = step_json(plan.chosen->step);
    (*json)["step"]["predicted"] = prediction_json(*plan.step);
    (*json)["step"]["batch"] = plan.request.concurrency;
    (*json)["step"]["context"] = plan.request.context;
    (*json)["step"]["scheme"] = scheme_name(*plan.scheme);
    (*json)["step"]["tokens_per_s"] = plan.chosen->tokens_per_second;
    if (plan.chosen->most_sequences != 0) (*json)["step"]["most_sequences"] = plan.chosen->most_sequences;
  } else {
    (*json)["layout"] = nullptr;
  }
  Json layouts = Json::array();
  for (const LayoutPlan& made : plan.search.plans) {
    Json entry = layout_json(made.layout);
    entry["step_ms"] = made.step.total() * 1e3;
    entry["tokens_per_s"] = made.tokens_per_second;
    entry["bytes_per_gpu"] = made.memory.total();
    layouts.push_back(std::move(entry));
  }
  (*json)["layouts"] = std::move(layouts);
  add_refused(plan.search, json);
  (*json)["decode"] = decode_json(plan);
  (*json)["prefill"] = prefill_json(plan.prefill);
  (*json)["prefill_by_scheme"] = Json::object();
  for (const auto& [scheme, points] : plan.prefill_by_scheme)
    (*json)["prefill_by_scheme"][std::string(scheme_name(scheme))] = prefill_json(points);
  (*json)["schemes"] = schemes_json(plan.schemes);
  if (plan.answer)
    (*json)["answer"] = {
        {"tokens", plan.answer->tokens},
        {"first_context", plan.answer->first_context},
        {"seconds", plan.answer->seconds.floor},
        {"measured_seconds",
         plan.answer->seconds.high > 0 ? Json({plan.answer->seconds.low, plan.answer->seconds.high}) : Json(nullptr)}};
  if (plan.speculation) (*json)["speculation"] = speculation_json(*plan.speculation);
  if (plan.exchange)
    (*json)["exchange"] = {{"tokens", plan.exchange->tokens},
                           {"ep", plan.exchange->ranks},
                           {"domains", plan.exchange->domains},
                           {"over_two_domains_ms",
                            plan.exchange->two_domains > 0 ? Json(plan.exchange->two_domains * 1e3) : Json(nullptr)},
                           {"inside_one_domain_ms", plan.exchange->one_domain * 1e3},
                           {"as_laid_out_ms", plan.exchange->as_laid_out * 1e3}};
}

}  // namespace

Json plan_json(const Plan& plan) {
  Json json;
  json["model"] = plan.subject ? Json(plan.subject->name) : Json(nullptr);
  json["gpu"] = plan.device.name;
  json["gpus"] = plan.gpus;
  json["fits"] = plan.fits;
  json["detail"] = plan.rows[plan.detail].format;
  json["formats"] = Json::array();
  for (const FormatRow& row : plan.rows) json["formats"].push_back(row_json(row));
  if (plan.subject) {
    add_model(plan, &json);
  } else {
    json["params"] = {{"total", *plan.request.total}, {"active", *plan.request.active}};
    json["refused"] = Json::array();
    json["refused_more"] = 0;
  }
  if (!plan.fits) {
    json["changes"] = Json::array();
    for (const Change& change : plan.changes)
      json["changes"].push_back({{"change", change.what}, {"effect", change.effect}});
  }
  json["notes"] = plan.notes;
  return json;
}

}  // namespace nibble
