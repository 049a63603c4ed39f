#include <fmt/format.h>

#include <algorithm>

#include "nibble/base/error.h"
#include "nibble/base/strings.h"
#include "nibble/base/table.h"
#include "nibble/plan/report.h"

namespace nibble {
namespace {

using Rows = std::vector<std::vector<std::string>>;

double of(uint64_t number) { return static_cast<double>(number); }

std::string billions(uint64_t number) { return fmt::format("{:.3f} B", of(number) / 1e9); }

std::string heading(const Plan& plan) {
  const Device& device = plan.device;
  std::string text;
  if (plan.subject) {
    const Subject& subject = *plan.subject;
    text = fmt::format("{}: {}, {} parameters, {} active a token ({} in routed experts", printable(subject.name),
                       subject.spec.family, billions(subject.counts.total), billions(subject.counts.active),
                       billions(subject.counts.routed));
    if (subject.counts.mtp != 0) text += fmt::format("; MTP layers beside them {}", billions(subject.counts.mtp));
    text += ")\n";
  } else {
    text = fmt::format("{:.4g} parameters, {:.4g} active a token\n", *plan.request.total, *plan.request.active);
  }
  return text + fmt::format("on {} x {} ({}, {}/s{}), {:.0f} % of it left free\n\n", plan.gpus, device.title,
                            human_bytes(device.memory_bytes),
                            human_bytes(static_cast<uint64_t>(device.memory_bandwidth)),
                            plan.gpus_chosen ? "; as many as it takes" : "", plan.request.reserve * 100);
}

std::string format_table(const Plan& plan) {
  Rows rows{{"format", "weights", "scales add", "GPUs at least",
             fmt::format("machines of {}", plan.request.gpus_per_machine),
             fmt::format("floor a token on {}", plan.gpus), "fits"}};
  std::string refused;
  for (const FormatRow& row : plan.rows) {
    if (!row.refused.empty()) {
      refused += fmt::format("{}: {}\n", row.format, printable(row.refused));
      continue;
    }
    rows.push_back({row.title, terabytes(row.size.weight_bytes),
                    row.size.scale_bytes == 0 ? "-" : fmt::format("{:.4g} %", row.scales_percent()),
                    std::to_string(row.min_gpus), std::to_string(row.machines),
                    fmt::format("{:.2f} ms", row.floor_seconds * 1e3), row.fits ? "yes" : "no"});
  }
  return table_text(rows) + refused + "floor: reading the active weights once, over all GPUs; no cache, no exchange\n";
}

std::string memory_section(const Plan& plan) {
  const MemoryPlan& memory = plan.chosen->memory;
  Rows rows{{"on the fullest GPU", "bytes", ""}};
  for (size_t i = 0; i < memory.by_role.size(); ++i) {
    if (memory.by_role[i] != 0)
      rows.push_back({fmt::format("weights: {}", role_name(static_cast<Role>(i))), human_bytes(memory.by_role[i]), ""});
  }
  const auto add = [&](const char* what, uint64_t bytes, std::string why) {
    rows.push_back({what, human_bytes(bytes), std::move(why)});
  };
  add("cache", memory.kv,
      fmt::format("{} sequences of {} tokens", plan.request.concurrency, with_commas(plan.request.context)));
  add("activations", memory.activations, fmt::format("of {} tokens at a time", with_commas(kPrefillChunk)));
  add("workspace", memory.workspace, "");
  add("communication", memory.communication, "");
  if (memory.graphs != 0)
    add("captured graphs", memory.graphs, fmt::format("{} to this", human_bytes(memory.graphs_low)));
  add("left of the reserve", memory.reserve, fmt::format("{:.0f} %", plan.request.reserve * 100));
  add("sum", memory.total(),
      memory.fits() ? fmt::format("of {}", human_bytes(memory.capacity))
                    : fmt::format("of {}: {} too much", human_bytes(memory.capacity),
                                  human_bytes(memory.total() - memory.capacity)));
  return table_text(rows) +
         fmt::format("while loading: {} more for repacking ({} in engines that repack a layer at once)\n",
                     human_bytes(memory.repack), human_bytes(memory.largest_stack));
}

std::string prediction_text(const Prediction& prediction) {
  if (prediction.high <= 0) return human_seconds(prediction.floor);
  return fmt::format("{}; {} to {} by measured ceilings", human_seconds(prediction.floor),
                     human_seconds(prediction.low), human_seconds(prediction.high));
}

// Of the asked concurrency, or with the throughput target of as many sequences as fit.
std::string rate_of(const LayoutPlan& plan) {
  if (plan.most_sequences == 0) return fmt::format("{:.0f} tokens a second", plan.tokens_per_second);
  return fmt::format("at most {} sequences fit: {:.0f} tokens a second", with_commas(plan.most_sequences),
                     plan.tokens_per_second);
}

std::string step_section(const Plan& plan) {
  const StepTime& step = plan.chosen->step;
  std::string text =
      fmt::format("one step of {} sequences at {} tokens, {}: at least {} ({} of weights, {} of cache read",
                  plan.request.concurrency, with_commas(plan.request.context), scheme_name(*plan.scheme),
                  prediction_text(*plan.step), human_bytes(static_cast<uint64_t>(step.weight_bytes)),
                  human_bytes(static_cast<uint64_t>(step.kv_bytes)));
  if (step.distinct_experts > 0)
    text += fmt::format("; {:.1f} of {} experts a layer", step.distinct_experts, plan.subject->spec.experts);
  if (step.exchange > 0) text += fmt::format("; {} of it exchange", human_seconds(step.exchange));
  text += fmt::format("); {}\n", rate_of(*plan.chosen));
  if (plan.answer)
    text += fmt::format("one answer of {} tokens behind {} others: at least {}\n", with_commas(plan.answer->tokens),
                        with_commas(plan.answer->first_context), prediction_text(plan.answer->seconds));
  if (plan.exchange) text += exchange_text(*plan.exchange) + "\n";
  return text;
}

std::string decode_table(const Plan& plan) {
  std::vector<uint64_t> contexts;
  for (const DecodePoint& point : plan.decode) {
    if (std::find(contexts.begin(), contexts.end(), point.context) == contexts.end()) contexts.push_back(point.context);
  }
  Rows rows{{"batch", "experts"}};
  for (const uint64_t context : contexts) rows[0].push_back(fmt::format("at {}", with_commas(context)));
  for (const DecodePoint& point : plan.decode) {
    if (point.context == contexts.front())
      rows.push_back({std::to_string(point.batch), fmt::format("{:.1f}", point.step.distinct_experts)});
  }
  for (const DecodePoint& point : plan.decode) {
    for (auto& row : rows) {
      if (row[0] == std::to_string(point.batch))
        row.push_back(human_seconds(point.step.total()) + (point.fits ? "" : "*"));
    }
  }
  const bool all = std::all_of(plan.decode.begin(), plan.decode.end(), [](const DecodePoint& p) { return p.fits; });
  return "decoding, least time of a step by batch and context:\n" + table_text(rows) +
         (all ? "" : "* more than the memory holds\n");
}

std::string prefill_lines(const Plan& plan) {
  std::string text;
  const auto add = [&](Scheme scheme, const std::vector<PrefillPoint>& points) {
    text += fmt::format("prefill of one prompt in {}, least time:", scheme_name(scheme));
    for (const PrefillPoint& point : points)
      text += fmt::format(" {} tokens {};", with_commas(point.tokens), human_seconds(point.time.total()));
    text.back() = '\n';
  };
  if (plan.prefill_by_scheme.empty()) add(*plan.scheme, plan.prefill);
  for (const auto& [scheme, points] : plan.prefill_by_scheme) add(scheme, points);
  return text;
}

std::string scheme_section(const Plan& plan) {
  Rows rows{{"phase", "tokens", "scheme", "experts of a layer", "measured", "in 8 bits", "in 16 bits", "why"}};
  const auto or_dash = [](double s) { return s > 0 ? human_seconds(s) : std::string("-"); };
  for (const SchemeChoice& choice : plan.schemes.choices) {
    SchemeTime chosen;
    for (const SchemeTime& time : choice.times) {
      if (time.scheme == choice.chosen) chosen = time;
    }
    std::string measured = "-";
    if (chosen.measured.high > 0)
      measured = fmt::format("{} to {}", human_seconds(chosen.measured.low), human_seconds(chosen.measured.high));
    rows.push_back({choice.phase, with_commas(choice.tokens), std::string(scheme_name(choice.chosen)),
                    human_seconds(chosen.seconds), std::move(measured), or_dash(choice.seconds_8bit),
                    or_dash(choice.seconds_16bit), choice.reason});
  }
  std::string text = table_text(rows);
  const auto slower = [&](const char* than, const std::optional<uint64_t>& tokens, const char* by) {
    if (tokens)
      text += fmt::format("from {} tokens on W4A16 is slower than {}, by {}\n", with_commas(*tokens), than, by);
  };
  slower("8-bit weights and arithmetic", plan.schemes.slower_than_8bit, "the roofline");
  slower("16-bit weights", plan.schemes.slower_than_16bit, "the roofline");
  slower("16-bit weights", plan.schemes.measured_slower_than_16bit, "what kernels reached");
  return text;
}

std::string speculation_section(const Speculation& s) {
  std::string text =
      fmt::format("drafting {} tokens: experts a layer {:.1f} -> {:.1f}, step {} -> {} and {} of drafting; ", s.drafts,
                  s.distinct_before, s.distinct_after, human_seconds(s.step_seconds), human_seconds(s.verify_seconds),
                  human_seconds(s.draft_seconds));
  text += s.break_even ? fmt::format("loses below an acceptance of {:.0f} %\n", 100 * *s.break_even)
                       : std::string("loses at any acceptance\n");
  for (const auto& [acceptance, gain] : s.speedup)
    text += fmt::format("  {:.0f} % accepted: {:.2f} times the tokens\n", acceptance * 100, gain);
  return text;
}

std::string refusals(const Plan& plan) {
  std::string text;
  // One reason stands for all layouts that it forbids.
  std::vector<std::string> told;
  for (const RefusedLayout& refused : plan.search.refused) {
    const std::string& reason = refused.refusal.reason;
    if (std::find(told.begin(), told.end(), reason) != told.end()) continue;
    told.push_back(reason);
    if (told.size() > 8) break;
    text += fmt::format("not {}: {}", refused.layout.name(), reason);
    for (size_t i = 0; i < refused.refusal.ways_out.size(); ++i)
      text += fmt::format("{}{}", i == 0 ? "; try: " : "; or: ", refused.refusal.ways_out[i]);
    text += "\n";
  }
  return text;
}

std::string model_sections(const Plan& plan) {
  const Subject& subject = *plan.subject;
  const uint64_t bytes = plan.request.kv_element_bytes;
  std::string text = fmt::format("\ncache: {} bytes a token and {} a sequence in {} bits\n",
                                 fmt::format("{:.6g}", subject.cache.bytes_per_token(bytes)),
                                 human_bytes(subject.cache.bytes_per_sequence(bytes)), 8 * bytes);
  if (!plan.chosen) return text + refusals(plan);
  text += fmt::format("\n{}, {}\n", plan.rows[plan.detail].title, plan.chosen->layout.name());
  text += memory_section(plan) + "\n" + step_section(plan) + "\n" + decode_table(plan) + prefill_lines(plan);
  if (!plan.schemes.choices.empty()) text += "\n" + scheme_section(plan);
  if (plan.speculation) text += "\n" + speculation_section(*plan.speculation);
  const std::string refused = refusals(plan);
  return refused.empty() ? text : text + "\n" + refused;
}

}  // namespace

std::string terabytes(uint64_t bytes) {
  if (of(bytes) < 1e10) return human_bytes(bytes);
  return of(bytes) < 1e11 ? fmt::format("{:.1f} GB", of(bytes) / 1e9) : fmt::format("{:.2f} TB", of(bytes) / 1e12);
}

std::string exchange_text(const ExchangeTime& exchange) {
  std::string text =
      fmt::format("experts dealt out over EP {}: their exchange takes {} a step inside one machine's links",
                  exchange.ranks, human_seconds(exchange.one_domain));
  if (exchange.two_domains > 0)
    text += fmt::format(", {} over the network between two", human_seconds(exchange.two_domains));
  if (exchange.domains > 2)
    text += fmt::format(", {} between the {} of this plan", human_seconds(exchange.as_laid_out), exchange.domains);
  return text;
}

std::string human_seconds(double seconds) {
  if (seconds >= 100) return fmt::format("{:.0f} s", seconds);
  if (seconds >= 1) return fmt::format("{:.2f} s", seconds);
  if (seconds >= 1e-4) return fmt::format("{:.2f} ms", seconds * 1e3);
  return fmt::format("{:.2f} us", seconds * 1e6);
}

std::string plan_text(const Plan& plan, bool with_notes) {
  std::string text = heading(plan) + format_table(plan);
  if (plan.subject) text += model_sections(plan);
  if (!plan.fits) {
    text += "\nit does not fit";
    if (!plan.subject)
      text += fmt::format(
          ": {} of weights, room for {}", terabytes(plan.rows[plan.detail].size.weight_bytes),
          terabytes(static_cast<uint64_t>(usable_bytes(plan.device, plan.request.reserve) * of(plan.gpus))));
    text += plan.changes.empty() ? ", and no single change of an option helps\n" : "; what would:\n";
    for (const Change& change : plan.changes) text += fmt::format("  {}  ({})\n", change.what, change.effect);
  }
  if (!with_notes) return text;
  for (const std::string& note : plan.notes) text += fmt::format("note: {}\n", printable(note));
  return text;
}

}  // namespace nibble
