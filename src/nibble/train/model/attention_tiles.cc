#include "nibble/train/model/attention_tiles.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <limits>
#include <vector>

// Of OpenBLAS, where that is the library: products inside a tile belong to the thread that has the tile.
extern "C" {
void openblas_set_num_threads(int) __attribute__((weak));
int openblas_get_num_threads() __attribute__((weak));
}

namespace nibble {
namespace {

using at::Tensor;

constexpr int64_t kQueries = 128;  // of a tile, at most: scores of 128 · 512 floats stay in the second-level cache

class OneThreadProducts {
 public:
  OneThreadProducts() : before_(openblas_get_num_threads != nullptr ? openblas_get_num_threads() : 0) {
    if (before_ > 1) openblas_set_num_threads(1);
  }
  OneThreadProducts(const OneThreadProducts&) = delete;
  OneThreadProducts& operator=(const OneThreadProducts&) = delete;
  ~OneThreadProducts() {
    if (before_ > 1) openblas_set_num_threads(before_);
  }

 private:
  int before_;
};

// Queries [first, first + rows) and the keys [begin, first + rows) that some of them see.
struct Tile {
  int64_t first = 0, rows = 0, begin = 0;
  int64_t keys() const { return first + rows - begin; }
};

std::vector<Tile> tiles_of(int64_t tokens, int64_t window) {
  const int64_t count = (tokens + kQueries - 1) / kQueries, rows = (tokens + count - 1) / count;
  std::vector<Tile> tiles;
  for (int64_t first = 0; first < tokens; first += rows) {
    const int64_t begin = window == 0 ? 0 : std::max<int64_t>(0, first + 1 - window);
    tiles.push_back({first, std::min(rows, tokens - first), begin});
  }
  return tiles;
}

// One head of one sequence: (T, D) views, with the scratch of the thread.
struct Head {
  Tensor q, k, v, scores;
  int64_t window = 0;
};

// Scores of a tile in `head.scores`, those of keys that are not seen at -infinity.
Tensor scores_of(const Head& head, const Tile& tile) {
  Tensor scores = head.scores.narrow(0, 0, tile.rows * tile.keys()).view({tile.rows, tile.keys()});
  at::mm_out(scores, head.q.narrow(0, tile.first, tile.rows), head.k.narrow(0, tile.begin, tile.keys()).t());
  float* data = scores.data_ptr<float>();
  for (int64_t r = 0; r < tile.rows; ++r) {
    const int64_t place = tile.first + r;
    float* row = data + r * tile.keys();
    std::fill(row + (place + 1 - tile.begin), row + tile.keys(), -std::numeric_limits<float>::infinity());
    if (head.window > 0) {
      const int64_t seen = std::max<int64_t>(tile.begin, place + 1 - head.window);
      std::fill(row, row + (seen - tile.begin), -std::numeric_limits<float>::infinity());
    }
  }
  return scores;
}

// Calls use(b, g, scratch) for every key head of every sequence, on all threads.
template <typename Use>
void for_key_heads(const Tensor& k, int64_t scratch, const Use& use) {
  const int64_t groups = k.size(2);
  const OneThreadProducts one_thread;
  at::parallel_for(0, k.size(0) * groups, 1, [&](int64_t begin, int64_t end) {
    const at::NoGradGuard no_grad;
    Tensor first = at::empty({scratch}, k.options()), second = at::empty({scratch}, k.options());
    for (int64_t i = begin; i < end; ++i) use(i / groups, i % groups, first, second);
  });
}

Tensor head_of(const Tensor& x, int64_t b, int64_t h) { return x.select(0, b).select(1, h); }

}  // namespace

std::pair<Tensor, Tensor> AttentionTiles::forward() const {
  const int64_t heads = q.size(2), tokens = q.size(1), group = heads / k.size(2);
  const at::NoGradGuard no_grad;
  Tensor out = at::empty({q.size(0), tokens, heads, v.size(3)}, q.options());
  Tensor lse = at::empty({q.size(0), tokens, heads}, q.options());
  const std::vector<Tile> tiles = tiles_of(tokens, window);
  for_key_heads(k, std::min(tokens, kQueries) * tokens, [&](int64_t b, int64_t g, Tensor& scratch, Tensor& /*other*/) {
    for (int64_t h = g * group; h < (g + 1) * group; ++h) {
      const Head head{head_of(q, b, h), head_of(k, b, g), head_of(v, b, g), scratch, window};
      Tensor result = head_of(out, b, h), logs = head_of(lse.unsqueeze(3), b, h);
      for (const Tile& tile : tiles) {
        Tensor scores = scores_of(head, tile);
        Tensor most = scores.amax(1, true);
        if (sinks.defined()) most = most.clamp_min(sinks.select(0, h).item<double>());
        scores.sub_(most).exp_();
        Tensor sum = scores.sum(1, true);
        if (sinks.defined()) sum.add_((sinks.select(0, h) - most).exp_());
        Tensor rows = result.narrow(0, tile.first, tile.rows);
        at::mm_out(rows, scores, head.v.narrow(0, tile.begin, tile.keys()));
        rows.div_(sum);
        logs.narrow(0, tile.first, tile.rows).copy_(sum.log_().add_(most));
      }
    }
  });
  return {out, lse};
}

AttentionGradients AttentionTiles::backward(const Tensor& out, const Tensor& lse, const Tensor& grad) const {
  const int64_t heads = q.size(2), tokens = q.size(1), group = heads / k.size(2);
  const at::NoGradGuard no_grad;
  AttentionGradients grads{at::empty_like(q), at::zeros_like(k), at::zeros_like(v), {}};
  const Tensor delta = (out * grad).sum(3);  // (B, T, heads)
  const std::vector<Tile> tiles = tiles_of(tokens, window);
  for_key_heads(k, std::min(tokens, kQueries) * tokens, [&](int64_t b, int64_t g, Tensor& scratch, Tensor& other) {
    Tensor dk = head_of(grads.k, b, g), dv = head_of(grads.v, b, g);
    for (int64_t h = g * group; h < (g + 1) * group; ++h) {
      const Head head{head_of(q, b, h), head_of(k, b, g), head_of(v, b, g), scratch, window};
      const Tensor logs = head_of(lse.unsqueeze(3), b, h), deltas = head_of(delta.unsqueeze(3), b, h);
      const Tensor dout = head_of(grad, b, h);
      Tensor dq = head_of(grads.q, b, h);
      for (const Tile& tile : tiles) {
        Tensor chances = scores_of(head, tile);
        chances.sub_(logs.narrow(0, tile.first, tile.rows)).exp_();
        const Tensor dout_rows = dout.narrow(0, tile.first, tile.rows);
        dv.narrow(0, tile.begin, tile.keys()).addmm_(chances.t(), dout_rows);
        Tensor slopes = other.narrow(0, 0, tile.rows * tile.keys()).view({tile.rows, tile.keys()});
        at::mm_out(slopes, dout_rows, head.v.narrow(0, tile.begin, tile.keys()).t());
        slopes.sub_(deltas.narrow(0, tile.first, tile.rows)).mul_(chances);
        Tensor dq_rows = dq.narrow(0, tile.first, tile.rows);
        at::mm_out(dq_rows, slopes, head.k.narrow(0, tile.begin, tile.keys()));
        dk.narrow(0, tile.begin, tile.keys()).addmm_(slopes.t(), head.q.narrow(0, tile.first, tile.rows));
      }
    }
  });
  // A sink takes its share of every row and gives nothing: d = -share · delta.
  if (sinks.defined())
    grads.sinks = (sinks.view({1, 1, heads}) - lse).exp_().mul_(delta).sum(at::IntArrayRef({0, 1})).neg_();
  return grads;
}

}  // namespace nibble
