#include "nibble/certify/attribute.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "nibble/base/check.h"
#include "nibble/base/rng.h"
#include "nibble/base/stopwatch.h"
#include "nibble/engine/weights/role_swap.h"

namespace nibble {
namespace {

constexpr uint64_t kRowsAtATime = 16;  // of logits

// A first divergence that is tried, and how far it goes.
struct TriedPlace {
  const Fork* fork = nullptr;
  uint64_t answer_position = 0;
  std::vector<TokenId> prefix = {};  // what is read to make the choice
};

struct TriedChoice {
  Choice choice;
  double margin = 0;  // logits: the reference's token less the candidate's own choice
};

// A group under way.
struct Branch {
  AttributedGroup group;
  SequenceStates states;
  bool takes_head = false;  // a tied embedding: the reference's is the head, too
};

std::vector<TriedPlace> draw_places(const AttributionRequest& request, Attribution* result) {
  std::vector<uint64_t> drawn;
  for (size_t i = 0; i < request.forks.size(); ++i) {
    if (request.forks[i].reference == request.forks[i].token) drawn.push_back(i);
  }
  result->divergences = request.forks.size();
  result->left_out = request.forks.size() - drawn.size();
  result->seed = request.options.seed;
  // The first ones in an order of random numbers, one a fork.
  std::sort(drawn.begin(), drawn.end(), [&](uint64_t a, uint64_t b) {
    return std::pair(random_bits(result->seed, a), a) < std::pair(random_bits(result->seed, b), b);
  });
  drawn.resize(std::min<uint64_t>(drawn.size(), request.options.most_places));
  std::sort(drawn.begin(), drawn.end());
  std::vector<TriedPlace> places;
  places.reserve(drawn.size());
  for (const uint64_t i : drawn) {
    const Fork& fork = request.forks[i];
    const Chain& chain = request.chains[fork.chain];
    TriedPlace place{.fork = &fork, .answer_position = chosen_positions(chain)[fork.position]};
    place.prefix = chain.prompt;
    place.prefix.insert(place.prefix.end(), chain.answer.begin(),
                        chain.answer.begin() + static_cast<ptrdiff_t>(place.answer_position));
    result->tokens += place.prefix.size();
    places.push_back(std::move(place));
  }
  result->of = places.size();
  return places;
}

class AttributionRun {
 public:
  AttributionRun(const AttributionRequest& request, ThreadPool* pool,
                 const std::function<void(const AttributionProgress&)>& progress)
      : request_(request),
        pool_(pool),
        progress_(progress),
        own_(request.candidate->checkpoint, request.candidate->model, request.candidate_options.arithmetic, pool),
        other_(request.reference->checkpoint, request.reference->model, request.reference_options.arithmetic, pool),
        pass_(request.candidate->model.spec, request.candidate_options, pool),
        layers_(request.candidate->model.spec.layers.size()),
        tied_(own_.tied() && other_.tied()) {}

  Attribution run(ScoredStates* reference) {
    const Stopwatch watch;
    places_ = draw_places(request_, &result_);
    result_.layers = layers_;
    if (!places_.empty()) {
      keep_logits(reference);
      most_groups_ = groups_at_a_time();
      begin();
      while (!done_) sweep();
      rank();
    }
    result_.seconds = watch.seconds();
    return std::move(result_);
  }

 private:
  // The reference's, of each place.
  void keep_logits(ScoredStates* reference) {
    vocabulary_ = reference->vocabulary();
    for (const TriedPlace& place : places_) {
      const Chain& chain = request_.chains[place.fork->chain];
      const std::span<const float> row =
          reference->logits(place.fork->chain, chain.prompt.size() - 1 + place.answer_position, 1);
      wanted_.insert(wanted_.end(), row.begin(), row.end());
    }
  }

  uint64_t groups_at_a_time() const {
    const uint64_t limit = request_.options.state_bytes;
    const uint64_t each = result_.tokens * request_.candidate->model.spec.hidden * sizeof(float);
    if (limit == 0) return UINT64_MAX;
    return std::max<uint64_t>(2, limit / each) - 1;  // one of them are the candidate's own
  }

  void begin() {
    std::vector<std::vector<TokenId>> prefixes;
    prefixes.reserve(places_.size());
    for (const TriedPlace& place : places_) prefixes.push_back(place.prefix);
    const Linear own = own_.embedding(), other = other_.embedding();
    base_ = pass_.embed(own, prefixes);
    const WeightPlace place{std::nullopt, Role::kEmbedding};
    if (same_weights(own, other)) {
      result_.same.push_back(place);
    } else {
      branches_.push_back({group_of(place), pass_.embed(other, prefixes), tied_});
    }
  }

  AttributedGroup group_of(const WeightPlace& place) const {
    const int32_t layer = place.layer ? static_cast<int32_t>(*place.layer) : -1;
    const std::vector<ParamSpec>& params = request_.candidate->model.params;
    const auto tensors = std::count_if(params.begin(), params.end(), [&](const ParamSpec& param) {
      return param.layer == layer && param.role == place.role;
    });
    return {.place = place, .tensors = static_cast<uint64_t>(tensors)};
  }

  // From the layer where the last one stopped to the end of the model.
  void sweep() {
    bool takes_groups = true;
    ++result_.sweeps;
    const uint64_t start = layer_;
    for (uint64_t layer = start; layer < layers_; ++layer) {
      if (progress_) progress_({result_.sweeps, layer, layers_, branches_.size()});
      const LayerWeights own = own_.layer(layer);
      for (Branch& branch : branches_) pass(layer, own, &branch.states);
      if (!takes_groups) continue;
      takes_groups = take_groups(layer, own);
      if (takes_groups) pass(layer, own, &base_);
    }
    finish(takes_groups);
    branches_.clear();
    done_ = takes_groups;
  }

  // Starts the groups of a layer that differ. False: there is no room for another; the next sweep goes on from it.
  bool take_groups(uint64_t layer, const LayerWeights& own) {
    const LayerWeights other = other_.layer(layer);
    for (; role_ < layer_roles().size(); ++role_) {
      const Role role = layer_roles()[role_];
      if (!has_role(own, role)) continue;
      const WeightPlace place{layer, role};
      if (same_weights(own, other, role)) {
        result_.same.push_back(place);
        continue;
      }
      if (branches_.size() >= most_groups_) {
        layer_ = layer;
        return false;
      }
      LayerWeights mixed = own;
      take_weights(other, role, &mixed);
      branches_.push_back({group_of(place), base_});
      pass(layer, mixed, &branches_.back().states);
    }
    role_ = 0;
    return true;
  }

  void pass(uint64_t layer, const LayerWeights& weights, SequenceStates* states) {
    ++result_.layer_passes;
    pass_.run(layer, weights, states);
  }

  // The choices behind the last layer. `all`: the candidate's own states have come there, too.
  void finish(bool all) {
    const std::vector<float> norm = own_.final_norm();
    const Linear head = own_.head(), other = other_.head();
    for (const Branch& branch : branches_) {
      add(branch.group, choices(norm, branch.takes_head ? other : head, branch.states));
    }
    if (!all) return;
    const std::vector<TriedChoice> before = choices(norm, head, base_);
    for (size_t i = 0; i < places_.size(); ++i) NIBBLE_CHECK(before[i].choice.candidate == places_[i].fork->candidate);
    for (const TriedChoice& one : before) {
      result_.kl_before += static_cast<double>(one.choice.kl) / static_cast<double>(before.size());
      margin_before_ += one.margin / static_cast<double>(before.size());
    }
    const std::vector<float> other_norm = other_.final_norm();
    const WeightPlace of_norm{std::nullopt, Role::kNorm}, of_head{std::nullopt, Role::kHead};
    if (norm == other_norm) {
      result_.same.push_back(of_norm);
    } else {
      add(group_of(of_norm), choices(other_norm, head, base_));
    }
    if (tied_) return;
    if (same_weights(head, other)) {
      result_.same.push_back(of_head);
    } else {
      add(group_of(of_head), choices(norm, other, base_));
    }
  }

  std::vector<TriedChoice> choices(const std::vector<float>& norm, const Linear& head, const SequenceStates& states) {
    std::vector<TriedChoice> made(places_.size());
    std::vector<float> logits;
    for (uint64_t first = 0; first < places_.size(); first += kRowsAtATime) {
      const uint64_t count = std::min<uint64_t>(kRowsAtATime, places_.size() - first);
      std::vector<uint64_t> rows(count);
      for (uint64_t i = 0; i < count; ++i) rows[i] = states.begins[first + i + 1] - 1;
      logits.resize(count * vocabulary_);
      pass_.logits(norm, head, states, rows, logits.data());
      pool_->run(count, [&](uint64_t i) {
        made[first + i] = choice(first + i, std::span(logits).subspan(i * vocabulary_, vocabulary_));
      });
    }
    return made;
  }

  TriedChoice choice(uint64_t place, std::span<const float> logits) const {
    const Fork& fork = *places_[place].fork;
    const std::span<const float> wanted = std::span(wanted_).subspan(place * vocabulary_, vocabulary_);
    TriedChoice made;
    made.choice = judge_choice(wanted, logits, fork.token, request_.judge, fork.chain, places_[place].prefix.size());
    made.margin = static_cast<double>(logits[static_cast<size_t>(fork.token)]) -
                  static_cast<double>(logits[static_cast<size_t>(fork.candidate)]);
    return made;
  }

  void add(AttributedGroup group, const std::vector<TriedChoice>& made) {
    for (size_t i = 0; i < made.size(); ++i) {
      group.healed += made[i].choice.candidate == places_[i].fork->token ? 1U : 0U;
      group.margin_gain += made[i].margin / static_cast<double>(made.size());
      group.kl_after += static_cast<double>(made[i].choice.kl) / static_cast<double>(made.size());
    }
    result_.groups.push_back(group);
  }

  void rank() {
    for (AttributedGroup& group : result_.groups) group.margin_gain -= margin_before_;
    const auto key = [](const AttributedGroup& group) {
      return std::tuple(-static_cast<double>(group.healed), group.kl_after, -group.margin_gain);
    };
    std::stable_sort(result_.groups.begin(), result_.groups.end(),
                     [&](const AttributedGroup& a, const AttributedGroup& b) { return key(a) < key(b); });
  }

  const AttributionRequest& request_;
  ThreadPool* pool_;
  const std::function<void(const AttributionProgress&)>& progress_;
  WeightLoader own_, other_;  // the candidate's, the reference's
  LayerPass pass_;
  uint64_t layers_;
  bool tied_;
  std::vector<TriedPlace> places_;
  std::vector<float> wanted_;  // (places, V): the reference's logits
  uint64_t vocabulary_ = 0, most_groups_ = 0;
  SequenceStates base_;  // the candidate's own, in front of layer_
  uint64_t layer_ = 0;   // where the next sweep begins …
  size_t role_ = 0;      // … and with which role
  bool done_ = false;
  std::vector<Branch> branches_;
  double margin_before_ = 0;
  Attribution result_;
};

}  // namespace

Attribution attribute(const AttributionRequest& request, ScoredStates* states, ThreadPool* pool,
                      const std::function<void(const AttributionProgress&)>& progress) {
  return AttributionRun(request, pool, progress).run(states);
}

}  // namespace nibble
