#include "nibble/engine/bench/op_bench.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "nibble/base/checked_math.h"
#include "nibble/base/error.h"
#include "nibble/base/rng.h"
#include "nibble/engine/multiplier.h"
#include "nibble/kernels/pack.h"
#include "nibble/kernels/select.h"
#include "nibble/numerics/decode.h"
#include "nibble/numerics/scale_codec.h"

namespace nibble {
namespace {

constexpr uint64_t kPatternRows = 128;  // random ones, which are repeated

// Random codes and scales of ordinary size.
EncodedMatrix random_rows(const Format& format, uint64_t rows, uint64_t cols, uint64_t seed) {
  EncodedMatrix matrix = EncodedMatrix::make(format, rows, cols);
  uint64_t index = 0;
  if (format.is_dense()) {
    std::vector<float> values(rows * cols);
    for (float& value : values) value = static_cast<float>(0.05 * random_normal(seed, index++));
    const DenseView dense{reinterpret_cast<const std::byte*>(values.data()), Element::kF32, rows, cols, cols * 4};
    convert(dense, format.element, matrix.codes.data());
    return matrix;
  }
  const auto nan = format.element == Element::kE4M3 ? std::byte{0x7f} : std::byte{0xff};
  for (std::byte& code : matrix.codes) {
    code = static_cast<std::byte>(random_bits(seed, index++));
    if (format.element == Element::kE4M3 && (code & std::byte{0x7f}) == nan) code = std::byte{0x31};
  }
  const uint64_t size = format.scale_bytes();
  for (uint64_t at = 0; at < matrix.scales.size(); at += size) {
    const uint32_t bits = scale_encode(format.scale, static_cast<float>(std::exp2(random_uniform(seed, index++) - 6)));
    std::memcpy(matrix.scales.data() + at, &bits, size);
  }
  for (uint8_t& zero : matrix.zeros) zero = static_cast<uint8_t>(random_bits(seed, index++) % 16);
  if (format.two_level) matrix.tensor_scale = {SecondLevel::kMultiply, 0.01F};
  return matrix;
}

// Matrices of one size, enough of them to be in no cache.
class Weights {
 public:
  Weights(const OpBenchRequest& request, ThreadPool* pool) : format_(parse_format(request.format)) {
    const LayoutChoice choice = choose_layout(format_, request.op.n, request.op.k);
    if (!choice.layout)
      throw Error("no kernel multiplies this format: " + choice.obstacle).value("format", format_.name);
    const EncodedMatrix pattern = random_rows(format_, std::min(kPatternRows, request.op.n), request.op.k, 1);
    const WeightLayout small = choose_layout(format_, pattern.rows, pattern.cols).layout.value();
    AlignedBytes packed(small.bytes());
    pack_rows(small, pattern.view(), 0, packed.data());
    const uint64_t bytes = choice.layout->bytes();
    const uint64_t experts = std::max<uint64_t>(1, request.op.experts);
    const uint64_t sets = std::max<uint64_t>(1, ceil_div(request.memory, bytes * experts));
    matrices_.resize(sets * experts);
    pool->run(matrices_.size(), [&](uint64_t i) {
      Linear& linear = matrices_[i];
      linear.storage = AlignedBytes(bytes);
      linear.matrix = {*choice.layout, linear.storage.data(), multiplier_of(format_, pattern.tensor_scale)};
      repeat(small, packed.data(), *choice.layout, linear.storage.data());
      set_kernel(request.arithmetic, &linear);
    });
  }

  const std::vector<Linear>& matrices() const { return matrices_; }
  double stored_bytes() const {
    const WeightLayout& layout = matrices_[0].matrix.layout;
    return static_cast<double>(format_.stored_bytes(layout.n, layout.k).value());
  }

 private:
  static void repeat(const WeightLayout& small, const std::byte* pattern, const WeightLayout& layout, std::byte* out) {
    const uint64_t groups = small.row_groups(), bytes = layout.row_group_bytes();
    for (uint64_t g = 0; g < layout.row_groups(); ++g)
      std::memcpy(out + g * bytes, pattern + g % groups * bytes, bytes);
    const uint64_t apart = layout.apart_scales();
    auto* to = reinterpret_cast<float*>(out + layout.apart_offset());
    const auto* from = reinterpret_cast<const float*>(pattern + small.apart_offset());
    for (uint64_t g = 0; g < layout.row_groups(); ++g) std::copy_n(from + g % groups * apart, apart, to + g * apart);
  }

  Format format_;
  std::vector<Linear> matrices_;
};

// Which tokens go to which matrices in one run.
struct Choice {
  std::vector<uint64_t> matrices;
  std::vector<std::vector<uint32_t>> tokens;
};

Choice choose(const OpBenchRequest& request, uint64_t matrices, uint64_t run) {
  const uint64_t experts = std::max<uint64_t>(1, request.op.experts), sets = matrices / experts;
  const uint64_t first = run % sets * experts;
  std::vector<std::vector<uint32_t>> of(experts);
  for (uint64_t t = 0; t < request.tokens; ++t) {
    std::vector<uint64_t> order(experts);
    for (uint64_t e = 0; e < experts; ++e) order[e] = e;
    for (uint64_t s = 0; s < std::min(request.op.top_k, experts); ++s) {
      std::swap(order[s], order[s + random_bits(run, t * 64 + s) % (experts - s)]);
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
    const Linear& one = weights_.matrices()[0];
    row.kernel = one.kernel;
    row.activations = one.activations;
    row.largest_error = check();
    std::vector<double> seconds;
    double spent = 0;
    uint64_t multiplied = 0, read = 0;
    for (uint64_t run = 1; spent < request_.seconds || seconds.size() < 3; ++run) {
      const Choice choice = choose(request_, weights_.matrices().size(), run);
      const std::vector<Product> products = products_of(choice);
      const auto start = std::chrono::steady_clock::now();
      multiplier_.run(products);
      seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
      spent += seconds.back();
      read += choice.matrices.size();
      for (const auto& tokens : choice.tokens) multiplied += tokens.size();
    }
    row.runs = seconds.size();
    const double runs = static_cast<double>(row.runs);
    std::nth_element(seconds.begin(), seconds.begin() + static_cast<ptrdiff_t>(seconds.size() / 2), seconds.end());
    row.seconds = seconds[seconds.size() / 2];
    row.bytes = weights_.stored_bytes() * static_cast<double>(read) / runs;
    row.flops = 2.0 * static_cast<double>(request_.op.n) * static_cast<double>(request_.op.k) *
                static_cast<double>(multiplied) / runs;
    return row;
  }

 private:
  std::vector<Product> products_of(const Choice& choice) {
    std::vector<Product> products;
    float* out = out_.data();
    for (size_t i = 0; i < choice.matrices.size(); ++i) {
      const uint64_t count = choice.tokens[i].size();
      products.push_back({&weights_.matrices()[choice.matrices[i]], x_.data(), request_.tokens, request_.op.k, count,
                          choice.tokens[i].data(), out, request_.op.n});
      out += count * request_.op.n;
    }
    return products;
  }

  // The first and the last row group of a run, by the reference.
  double check() {
    const Choice choice = choose(request_, weights_.matrices().size(), 0);
    const std::vector<Product> products = products_of(choice);
    multiplier_.run(products);
    double most = 0, largest = 0;
    for (const Product& product : products) {
      const Linear& linear = *product.weights;
      const WeightLayout& layout = linear.matrix.layout;
      std::vector<float> wanted(product.tokens * layout.n);
      Int8Quantizer quantizer;
      F32Padder padder;
      PanelTask task;
      task.weights = &linear.matrix;
      task.tokens = std::min<uint64_t>(product.tokens, 4);
      task.rows = product.rows;
      task.out = wanted.data();
      task.out_stride = layout.n;
      if (linear.activations == ActivationKind::kInt8) {
        task.int8 = quantizer.run(layout, x_.data(), request_.tokens, request_.op.k);
      } else {
        task.f32 = padder.run(layout, x_.data(), request_.tokens, request_.op.k);
      }
      for (const uint64_t group : {uint64_t{0}, layout.row_groups() - 1}) {
        task.group_begin = group;
        task.group_end = group + 1;
        choose_kernel(layout, linear.activations, "reference").panel(layout)(task);
        for (uint64_t t = 0; t < task.tokens; ++t) {
          for (uint64_t n = group * kRowGroup; n < std::min(layout.n, (group + 1) * kRowGroup); ++n) {
            const double exact = static_cast<double>(wanted[t * layout.n + n]);
            most = std::max(most, std::abs(static_cast<double>(product.out[t * layout.n + n]) - exact));
            largest = std::max(largest, std::abs(exact));
          }
        }
      }
    }
    return largest == 0 ? most : most / largest;
  }

  const OpBenchRequest& request_;
  Weights weights_;
  Multiplier multiplier_;
  std::vector<float> x_, out_;
};

}  // namespace

OpBenchRow run_op_bench(const OpBenchRequest& request, ThreadPool* pool) { return OpBench(request, pool).run(); }

OpFloor op_floor(const OpBenchRow& row, const Device& machine) {
  const bool int8 = row.activations == ActivationKind::kInt8;
  const double reading = row.bytes / machine.memory_bandwidth;
  const double multiplying = row.flops / (int8 ? machine.int8_flops : machine.f32_flops);
  if (reading >= multiplying) return {reading, "memory"};
  return {multiplying, int8 ? "int8" : "f32"};
}

}  // namespace nibble
