#include "nibble/engine/bench/op_bench.h"

#include <algorithm>
#include <utility>

#include "nibble/base/checked_math.h"
#include "nibble/base/rng.h"
#include "nibble/base/stopwatch.h"
#include "nibble/engine/bench/measure.h"
#include "nibble/engine/bench/random_weights.h"
#include "nibble/engine/multiplier.h"
#include "nibble/kernels/select.h"

namespace nibble {
namespace {

constexpr uint64_t kCheckedTokens = 4;

// Matrices of one size, enough of them to be in no cache.
class ColdMatrices {
 public:
  ColdMatrices(const OpBenchRequest& request, ThreadPool* pool) : format_(parse_format(request.format)) {
    const ShapeOp& op = request.op;
    const uint64_t experts = std::max<uint64_t>(1, op.experts);
    const uint64_t bytes = needed_layout(format_, op.n, op.k).bytes() * experts;
    const uint64_t sets = std::max<uint64_t>(1, ceil_div(request.memory, bytes));
    matrices_ = random_linears(format_, op.n, op.k, sets * experts, request.arithmetic, pool);
  }

  const std::vector<Linear>& matrices() const { return matrices_; }
  double stored_bytes() const {
    return static_cast<double>(format_.stored_bytes(matrices_[0].rows(), matrices_[0].cols()).value());
  }

 private:
  Format format_;
  std::vector<Linear> matrices_;
};

// Which tokens go to which matrices in one run.
struct Choice {
  std::vector<uint64_t> matrices;
  std::vector<std::vector<uint32_t>> tokens;
};

// The first token's experts follow each other, run after run, so that each is read again after all others were; random
// ones would now and then still lie in a cache.
Choice choose(const OpBenchRequest& request, uint64_t matrices, uint64_t run) {
  const uint64_t experts = std::max<uint64_t>(1, request.op.experts), sets = matrices / experts;
  const uint64_t first = run % sets * experts;
  std::vector<std::vector<uint32_t>> of(experts);
  for (uint64_t t = 0; t < request.tokens; ++t) {
    std::vector<uint64_t> order(experts);
    for (uint64_t e = 0; e < experts; ++e) order[e] = (e + run / sets * request.op.top_k) % experts;
    for (uint64_t s = 0; s < std::min(request.op.top_k, experts); ++s) {
      if (t != 0) std::swap(order[s], order[s + random_bits(run, t * 64 + s) % (experts - s)]);
      of[order[s]].push_back(static_cast<uint32_t>(t));
    }
  }
  Choice choice;
  for (uint64_t e = 0; e < experts; ++e) {
    if (of[e].empty()) continue;
    choice.matrices.push_back(first + e);
    choice.tokens.push_back(std::move(of[e]));
  }
  return choice;
}

class OpBench {
 public:
  OpBench(const OpBenchRequest& request, ThreadPool* pool)
      : request_(request), weights_(request, pool), multiplier_(pool), x_(request.tokens * request.op.k) {
    for (uint64_t i = 0; i < x_.size(); ++i) x_[i] = static_cast<float>(random_normal(2, i));
    out_.resize(request.tokens * std::max<uint64_t>(1, std::min(request.op.top_k, request.op.experts)) * request.op.n);
  }

  OpBenchRow run() {
    OpBenchRow row;
    row.kernel = weights_.matrices()[0].choice->kernel(request_.tokens).name;
    if (request_.check) row.largest_error = check();
    std::vector<double> seconds;
    double spent = 0;
    for (uint64_t run = 1; spent < request_.seconds || seconds.size() < 3; ++run) {
      const std::vector<Product> products = products_of(choose(request_, weights_.matrices().size(), run));
      const Stopwatch watch;
      multiplier_.run(products);
      seconds.push_back(watch.seconds());
      spent += seconds.back();
      row.work += work_of(products);
    }
    row.runs = seconds.size();
    const double runs = static_cast<double>(row.runs);
    row.work = {row.work.int8_flops / runs, row.work.f32_flops / runs, row.work.bytes / runs};
    row.seconds = median(std::move(seconds));
    return row;
  }

 private:
  std::vector<Product> products_of(Choice choice) {
    choice_ = std::move(choice);
    std::vector<Product> products;
    float* out = out_.data();
    for (size_t i = 0; i < choice_.matrices.size(); ++i) {
      const uint64_t count = choice_.tokens[i].size();
      products.push_back({&weights_.matrices()[choice_.matrices[i]], x_.data(), request_.tokens, request_.op.k, count,
                          choice_.tokens[i].data(), out, request_.op.n});
      out += count * request_.op.n;
    }
    return products;
  }

  // Bytes as the format stores them, whatever the tiles add.
  OpWork work_of(const std::vector<Product>& products) const {
    OpWork work;
    for (const Product& product : products) {
      work += product_work(product.weights->matrix.layout, product.weights->activations, product.tokens);
    }
    work.bytes = weights_.stored_bytes() * static_cast<double>(products.size());
    return work;
  }

  // The first and the last row group of a run, by the reference.
  double check() {
    const std::vector<Product> products = products_of(choose(request_, weights_.matrices().size(), 0));
    multiplier_.run(products);
    LargestError error;
    for (const Product& product : products) compare(product, &error);
    return error.share();
  }

  void compare(const Product& product, LargestError* error) const {
    const Linear& linear = *product.weights;
    const WeightLayout& layout = linear.matrix.layout;
    std::vector<float> wanted(product.tokens * layout.n);
    PreparedActivations activations;
    activations.prepare(linear, x_.data(), request_.tokens, request_.op.k, multiplier_.pool());
    PanelTask task;
    activations.give(&task);
    task.weights = &linear.matrix;
    task.tokens = std::min<uint64_t>(product.tokens, kCheckedTokens);
    task.rows = product.rows;
    task.out = wanted.data();
    task.out_stride = layout.n;
    for (const uint64_t group : {uint64_t{0}, layout.row_groups() - 1}) {
      task.group_begin = group;
      task.group_end = group + 1;
      choose_kernel(layout, linear.activations, "reference").panel(layout)(task);
      const uint64_t begin = group * kRowGroup, rows = std::min(layout.n - begin, kRowGroup);
      for (uint64_t t = 0; t < task.tokens; ++t) {
        error->add({product.out + t * layout.n + begin, rows}, {wanted.data() + t * layout.n + begin, rows});
      }
    }
  }

  const OpBenchRequest& request_;
  ColdMatrices weights_;
  Multiplier multiplier_;
  Choice choice_;  // of the run at work
  std::vector<float> x_, out_;
};

}  // namespace

OpBenchRow run_op_bench(const OpBenchRequest& request, ThreadPool* pool) { return OpBench(request, pool).run(); }

}  // namespace nibble
