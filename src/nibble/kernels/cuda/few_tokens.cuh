// The whole MoE layer for 1 to 16 tokens in one launch: a persistent grid, one block of 16 warps a multiprocessor.
//
// Bound. At one token every weight of the chosen experts is read once and used once: 53 MB for gpt-oss-120b, 11.5 us at
// the 4.6 TB/s that an H200 reads. Nothing else may take time beside it, so:
//
// * One launch. Router, gate_up, activation, down and the weighted sum are phases of it; as launches they would cost 10
//   to 16 us. No barrier of the grid lies between: h and down's sums are words with a flag, the number of the call,
//   and whoever needs one reads it until the flag is there. All blocks are resident, so that ends.
// * Weights arrive by bulk copies (cp.async.bulk, an mbarrier a stage) into a ring of shared memory of each warp's own,
//   and that ring goes on into the down projection while gate_up is still computed: down's addresses are
//   known once the router has run. When h is there, more than 100 KB a multiprocessor of down are, too.
// * Every warp has the same number of tiles to within one: the tiles of a phase are one line, cut evenly over
//   multiprocessors and their warps. Where a cut falls into a row tile, its parts are summed in the order of the cuts:
//   through shared memory within a block, and for down through a second plane of sums between blocks (gate_up is cut
//   between row tiles among blocks, since the activation needs whole sums). No float atomics; the same bits every run.
// * Tensor cores do the products even for one token: they then cost one instruction for eight weights of a lane, and
//   decoding is what is left (fragment_math.cuh).
//
// Phases of a block: read the logits and stage x in shared memory, before any weights, behind which they would wait;
// route and order (route.cuh); gate_up, activation -> h; stage h; down -> sums with bias; weighted sum over a token's
// experts. Activations that do not fit the staging area (many tokens of one expert with a long K) are read from global
// memory.
//
// Reached on an H200 (bench/results/h200, docs/hopper-kernels.md): 77 % of 4.6 TB/s at 8 tokens of gpt-oss-120b, 42 %
// at one. What stands in between, by counters and clocks in the kernel: a tile of 64 columns takes 64 instructions and
// its share of a stage's about 25 more, 137 cycles a scheduler where memory would allow 124; and 16 us at one token are
// not matrix work: 2.5 between launches, 3.5 to route and to begin, 2.5 until h has arrived, 4 until the last sums.
#pragma once

#include "nibble/kernels/cuda/few_tokens_args.cuh"
#include "nibble/kernels/cuda/fragment_math.cuh"
#include "nibble/kernels/cuda/ptx.cuh"
#include "nibble/kernels/cuda/route.cuh"

namespace nibble {

// Warps of a block, stages of a warp's ring and columns of a stage.
template <int kWarpsOf, int kStagesOf, int kColsOf>
struct FewTokensTuning {
  static constexpr int kWarps = kWarpsOf, kStages = kStagesOf, kStageCols = kColsOf;
};

template <class Format, class Tuning, int kBlocks>
struct FewTokensMemory {
  static constexpr uint32_t kStageTiles = Tuning::kStageCols / Format::kTileCols;
  static constexpr uint32_t kStageBytes = kStageTiles * Format::kTileBytes;
  static constexpr uint32_t kRing = Tuning::kWarps * Tuning::kStages * kStageBytes;
  static constexpr uint32_t kPartial = kBlocks * 512;  // of a warp's row tile
  static constexpr uint32_t kStaging = kRing + Tuning::kWarps * 2 * kPartial;
  static_assert(kStageTiles > 0 && kStageBytes % 16 == 0 && sizeof(RouteMemory) <= kRing);
};

__device__ __forceinline__ uint32_t divide(uint32_t number, const Divisor& by) {
  return (__umulhi(number, by.multiplier) + number) >> by.shift;
}

// `total` things over `parts`, the first parts one more.
struct EvenSplit {
  uint32_t each = 0, more = 0;
  __device__ EvenSplit(uint32_t total, const Divisor& parts)
      : each(divide(total, parts)), more(total - each * parts.divisor) {}
  __device__ EvenSplit(uint32_t total, uint32_t parts) : each(total / parts), more(total % parts) {}
  __device__ uint32_t begin(uint32_t part) const { return part * each + min(part, more); }
};

// Of a matrix, what is asked for all the time: in registers.
struct TileSizes {
  uint32_t stage_tiles = 0, tiles = 0, row_tiles = 0;
  bool narrow = false;  // the last tile of a row tile
  __device__ TileSizes() {}
  __device__ explicit TileSizes(const FewTokensMatrix& m)
      : stage_tiles(m.stage_tiles), tiles(m.tiles.divisor), row_tiles(m.row_tiles.divisor), narrow(m.k % 64 != 0) {}
};

// A line of tiles through the row tiles of the active experts' matrices: `left` from (slot, row, tile) on.
struct TileLine {
  uint32_t left = 0, slot = 0, row = 0, tile = 0;
  __device__ TileLine() {}
  __device__ TileLine(uint32_t from, uint32_t to, const FewTokensMatrix& matrix) : left(to - from) {
    const uint32_t row_tile = divide(from, matrix.tiles);
    tile = from - row_tile * matrix.tiles.divisor;
    slot = divide(row_tile, matrix.row_tiles);
    row = row_tile - slot * matrix.row_tiles.divisor;
  }
  // Tiles of the next stage: never beyond the row tile.
  __device__ uint32_t count(const TileSizes& sizes) const {
    return min(min(sizes.stage_tiles, sizes.tiles - tile), left);
  }
  // Whether the next tile is another expert's.
  __device__ bool advance(uint32_t count, const TileSizes& sizes) {
    left -= count;
    tile += count;
    if (tile != sizes.tiles) return false;
    tile = 0;
    if (++row != sizes.row_tiles) return false;
    row = 0;
    ++slot;
    return true;
  }
};

template <class Format, class Tuning, int kBlocks>
class FewTokensKernel {
 public:
  using Memory = FewTokensMemory<Format, Tuning, kBlocks>;
  static constexpr uint32_t kWarps = Tuning::kWarps, kThreads = kWarps * 32;
  static constexpr uint32_t kUnrolledTiles = Format::kTileCols > 64 ? 1 : 4;

  struct Fixed {  // shared memory of fixed size
    WorkMap map;
    alignas(8) uint64_t full[kWarps][Tuning::kStages];
  };

  __device__ FewTokensKernel(const FewTokensArgs& args, Fixed* fixed, uint8_t* memory)
      : args_(args), fixed_(fixed), memory_(memory), warp_(threadIdx.x / 32), lane_(threadIdx.x % 32) {}

  // Both matrices go through the same code: what is compiled twice is fetched twice, and nothing runs long enough here
  // to make up for it.
  __device__ void run() {
    start();
#pragma unroll 1
    for (phase_ = 0; phase_ < 2; ++phase_) {
      if (phase_ == 1) {
        block_range(1, &begin_, &end_);
        stage_by_place();
      }
      __syncthreads();
      multiply_line();
      __syncthreads();
      join_line();
    }
    combine();
    // The blocks of a call add up to 2^32: before the last one, the upper word is that of this call for whoever starts
    // late.
    if (threadIdx.x == 0) ptx::add_relaxed(args_.calls, blockIdx.x == 0 ? (uint64_t{1} << 32) - (gridDim.x - 1) : 1);
  }

 private:
  __device__ void start() {
    if (lane_ == 0) {
      for (int s = 0; s < Tuning::kStages; ++s) ptx::barrier_init(full(s), 1);
      ptx::barrier_init_visible();
    }
    policy_ = ptx::evict_first_policy();
    ptx::launch_dependents();
    ptx::wait_for_predecessor();
    // 31 bits; the highest marks the begin of a row tile of down that ends in the next block.
    flag_ = static_cast<uint32_t>((*reinterpret_cast<const volatile uint64_t*>(args_.calls) >> 32) + 1) & 0x7FFFFFFFu;
    route();
    order_assignments(args_, &fixed_->map);
    cut();
  }

  // Activations are asked for before any weights: behind those they would wait for microseconds. If those of all tokens
  // fit they need not even wait for the router.
  __device__ __forceinline__ void route() {
    by_token_ = args_.tokens * row_stride(args_.hidden_size) <= args_.staging_bytes;
    auto* memory = reinterpret_cast<RouteMemory*>(memory_);
    const bool given = args_.router == MoeRouterKind::kGiven;
    if (!given) read_logits(args_, memory);
    if (by_token_) {
      stage_rows(args_.tokens, [this](uint32_t token, uint32_t chunk) { return load_x(token, chunk); });
    }
    __syncthreads();
    if (given) {
#pragma unroll 1
      for (uint32_t token = warp_; token < args_.tokens; token += kWarps) take_given(args_, token, &fixed_->map);
    } else {
      const uint32_t chunks = (args_.routed + 31) / 32;
#pragma unroll 1
      for (uint32_t task = warp_; task < args_.tokens * chunks; task += kWarps) {
        const uint32_t token = task / chunks;
        keep_of_chunk(args_, token, task - token * chunks, memory);
      }
      __syncthreads();
#pragma unroll 1
      for (uint32_t token = warp_; token < args_.tokens; token += kWarps) choose(args_, token, memory, &fixed_->map);
    }
    ptx::fence_async_shared();  // the ring was the router's until here
    __syncthreads();
  }

  // The warp's first copies.
  __device__ void cut() {
    block_range(0, &begin_, &end_);
    if (!by_token_) stage_by_place();
    begin_line(0);
#pragma unroll 1
    for (int s = 0; s < Tuning::kStages; ++s) fetch(s);
  }

  // What of a phase is this block's: whole row tiles of gate_up, tiles of down.
  __device__ __forceinline__ void block_range(uint32_t phase, uint32_t* begin, uint32_t* end) const {
    if (phase == 0) {
      const EvenSplit rows(fixed_->map.slots * args_.matrix[0].row_tiles.divisor, args_.blocks);
      *begin = rows.begin(blockIdx.x) * args_.matrix[0].tiles.divisor;
      *end = rows.begin(blockIdx.x + 1) * args_.matrix[0].tiles.divisor;
    } else {
      const EvenSplit tiles = down_split();
      const bool idle = blockIdx.x >= fixed_->map.slots * args_.matrix[1].row_tiles.divisor;
      *begin = idle ? 0 : tiles.begin(blockIdx.x);
      *end = idle ? 0 : tiles.begin(blockIdx.x + 1);
    }
  }

  // Each block has at least a row tile of down, so that a row tile is cut once at most.
  __device__ EvenSplit down_split() const {
    const uint32_t row_tiles = fixed_->map.slots * args_.matrix[1].row_tiles.divisor;
    const uint32_t total = row_tiles * args_.matrix[1].tiles.divisor;
    return row_tiles >= args_.blocks.divisor ? EvenSplit(total, args_.blocks) : EvenSplit(total, max(1u, row_tiles));
  }
  __device__ __forceinline__ uint32_t warp_begin(uint32_t warp) const {
    return begin_ + EvenSplit(end_ - begin_, kWarps).begin(warp);
  }
  __device__ __forceinline__ TileLine warp_line(uint32_t phase) const {
    uint32_t begin, end;
    block_range(phase, &begin, &end);
    const EvenSplit split(end - begin, kWarps);
    return TileLine(begin + split.begin(warp_), begin + split.begin(warp_ + 1), args_.matrix[phase]);
  }
  __device__ const FewTokensMatrix& matrix() const { return args_.matrix[phase_]; }

  // --- the ring
  __device__ uint32_t full(uint32_t stage) const { return ptx::shared_address(&fixed_->full[warp_][stage]); }
  __device__ uint8_t* stage_memory(uint32_t stage) const {
    return memory_ + (warp_ * Tuning::kStages + stage) * Memory::kStageBytes;
  }
  __device__ static bool is_narrow(const TileLine& line, uint32_t count, const TileSizes& sizes) {
    return Format::kCanBeNarrow && sizes.narrow && line.tile + count == sizes.tiles;
  }
  __device__ __forceinline__ void begin_line(uint32_t phase) {
    ahead_phase_ = phase;
    ahead_ = warp_line(phase);
    if (ahead_.left == 0) return;
    const FewTokensMatrix& m = args_.matrix[phase];
    ahead_sizes_ = TileSizes(m);
    from_ = m.data + fixed_->map.active[ahead_.slot] * m.expert_bytes +
            static_cast<uint64_t>(ahead_.row) * m.row_tile_bytes + ahead_.tile * Format::kTileBytes;
  }
  // Sets the next stage's copy off, if anything is left; goes on from gate_up to down.
  __device__ __forceinline__ void fetch(uint32_t stage) {
    if (ahead_.left == 0 && ahead_phase_ == 0) begin_line(1);
    if (ahead_.left == 0) {
      ptx::ring_skip();
      return;
    }
    const uint32_t count = ahead_.count(ahead_sizes_);
    uint32_t bytes = count * Format::kTileBytes;
    if (is_narrow(ahead_, count, ahead_sizes_)) bytes -= Format::kTileBytes - Format::kNarrowBytes;
    ptx::ring_copy(ptx::shared_address(stage_memory(stage)), from_, bytes, full(stage), policy_);
    // Row tiles of an expert follow each other.
    from_ += bytes;
    if (ahead_.advance(count, ahead_sizes_) && ahead_.left != 0) {
      const FewTokensMatrix& m = args_.matrix[ahead_phase_];
      from_ = m.data + fixed_->map.active[ahead_.slot] * m.expert_bytes;
    }
  }

  // --- activations
  // Rows of a block's experts in shared memory, 64 modulo 128 bytes apart: then the 8 rows of a fragment meet no bank
  // twice.
  __device__ static uint32_t row_stride(uint32_t k) { return k * 2 + (k * 2 % 128 == 0 ? 64 : 0); }

  // Eight activations of a token, or of h at a place, as they are multiplied.
  __device__ __forceinline__ uint4 load_x(uint32_t token, uint32_t chunk) const {
    const uint4 value =
        reinterpret_cast<const uint4*>(args_.x + static_cast<uint64_t>(token) * args_.hidden_size)[chunk];
    return Format::kScalesActivations ? scaled(value) : value;
  }
  __device__ __forceinline__ const uint2* hidden_chunk(uint32_t place, uint32_t chunk) const {
    return args_.hidden + static_cast<uint64_t>(place) * (args_.intermediate / 2) + chunk * 4;
  }
  __device__ __forceinline__ uint4 load_hidden(uint32_t place, uint32_t chunk) const {
    const uint2* from = hidden_chunk(place, chunk);
    uint4 first, second;
    do {
      first = ptx::load_flagged(from);
      second = ptx::load_flagged(from + 2);
    } while (!arrived(first, second));
    return make_uint4(first.x, first.z, second.x, second.z);
  }
  __device__ __forceinline__ uint4 load_activations(uint32_t place, uint32_t chunk) const {
    return phase_ == 0 ? load_x(fixed_->map.token[place], chunk) : load_hidden(place, chunk);
  }
  // Stages the activations of the block's experts, if they fit. `base_` is then the place of the first.
  __device__ __forceinline__ void stage_by_place() {
    by_token_ = false;
    if (begin_ == end_) return;
    const FewTokensMatrix& m = matrix();
    base_ = fixed_->map.first[TileLine(begin_, end_, m).slot];
    const uint32_t rows = fixed_->map.first[TileLine(end_ - 1, end_, m).slot + 1] - base_;
    staged_ = rows * row_stride(m.k) <= args_.staging_bytes;
    if (!staged_) return;
    if (phase_ == 0) {
      stage_rows(rows, [this](uint32_t row, uint32_t chunk) { return load_x(fixed_->map.token[base_ + row], chunk); });
    } else {
      stage_hidden(rows);
    }
  }
  // Loads of several chunks are on their way at a time: each takes most of a microsecond.
  template <class Load>
  __device__ __forceinline__ void stage_rows(uint32_t rows, const Load& load) {
    const uint32_t chunks = matrix().k / 8;
#pragma unroll 4
    for (uint32_t i = threadIdx.x; i < rows * chunks; i += kThreads) {
      const uint32_t row = divide(i, args_.chunks[phase_]);
      *staged_chunk(row, i - row * chunks) = load(row, i - row * chunks);
    }
  }
  __device__ __forceinline__ void stage_hidden(uint32_t rows) {
    const uint32_t chunks = matrix().k / 8, count = rows * chunks;
#pragma unroll 1
    for (uint32_t i = threadIdx.x; i < count; i += 2 * kThreads) {
      const uint32_t second = min(i + kThreads, count - 1);
      const uint32_t row0 = divide(i, args_.chunks[1]), row1 = divide(second, args_.chunks[1]);
      const uint32_t chunk0 = i - row0 * chunks, chunk1 = second - row1 * chunks;
      const uint2 *from0 = hidden_chunk(base_ + row0, chunk0), *from1 = hidden_chunk(base_ + row1, chunk1);
      uint4 a = ptx::load_flagged(from0), b = ptx::load_flagged(from0 + 2);
      uint4 c = ptx::load_flagged(from1), d = ptx::load_flagged(from1 + 2);
      while (!arrived(a, b)) {
        a = ptx::load_flagged(from0);
        b = ptx::load_flagged(from0 + 2);
      }
      while (!arrived(c, d)) {
        c = ptx::load_flagged(from1);
        d = ptx::load_flagged(from1 + 2);
      }
      *staged_chunk(row0, chunk0) = make_uint4(a.x, a.z, b.x, b.z);
      *staged_chunk(row1, chunk1) = make_uint4(c.x, c.z, d.x, d.z);
    }
  }
  __device__ bool arrived(const uint4& first, const uint4& second) const {
    return ((first.y ^ flag_) | (first.w ^ flag_) | (second.y ^ flag_) | (second.w ^ flag_)) == 0;
  }
  __device__ __forceinline__ uint4* staged_chunk(uint32_t row, uint32_t chunk) const {
    return reinterpret_cast<uint4*>(memory_ + Memory::kStaging + row * row_stride(matrix().k) + chunk * 16);
  }
  __device__ static uint4 scaled(uint4 value) {
    return make_uint4(ptx::multiply_pair(value.x, kPairOf2To63), ptx::multiply_pair(value.y, kPairOf2To63),
                      ptx::multiply_pair(value.z, kPairOf2To63), ptx::multiply_pair(value.w, kPairOf2To63));
  }

  // The tokens of an expert. Lanes beyond its tokens repeat the last one: their columns of the MMA are never stored.
  struct Tokens {
    uint32_t first = 0, count = 0;
    uint32_t staged[kBlocks];  // of this lane's activations, in memory_
  };
  __device__ __forceinline__ uint32_t place_of_lane(const Tokens& tokens, int block) const {
    return tokens.first + min(lane_ / 4 + 8 * block, tokens.count - 1);
  }
  __device__ __forceinline__ Tokens tokens_of(uint32_t slot) const {
    Tokens out;
    out.first = fixed_->map.first[slot];
    out.count = fixed_->map.first[slot + 1] - out.first;
#pragma unroll
    for (int b = 0; b < kBlocks; ++b) {
      const uint32_t place = place_of_lane(out, b), row = by_token_ ? fixed_->map.token[place] : place - base_;
      out.staged[b] = Memory::kStaging + row * row_stride(matrix().k) + lane_ % 4 * 16;
    }
    return out;
  }

  // --- a phase
  template <int kUsed>
  __device__ __forceinline__ void multiply_stage(const uint8_t* stage, uint32_t tile, uint32_t count, bool narrow_last,
                                                 const Tokens& tokens, Sums<kBlocks>* sums) {
    Sums<kUsed> used;
#pragma unroll
    for (int b = 0; b < kUsed; ++b) {
#pragma unroll
      for (int i = 0; i < 4; ++i) used.of[b][i] = sums->of[b][i];
    }
    const uint8_t* x[kUsed];
#pragma unroll
    for (int b = 0; b < kUsed; ++b) x[b] = memory_ + tokens.staged[b] + tile * (Format::kTileCols * 2);
    const auto activations = [&](int b, int half) { return *reinterpret_cast<const uint4*>(x[b] + half * 64); };
    const uint32_t whole = count - (narrow_last ? 1 : 0);
#pragma unroll kUnrolledTiles
    for (uint32_t i = 0; i < whole; ++i) {
      multiply_tile<Format, kUsed, Format::kTileCols>(stage, activations, &used);
      stage += Format::kTileBytes;
#pragma unroll
      for (int b = 0; b < kUsed; ++b) x[b] += Format::kTileCols * 2;
    }
    if constexpr (Format::kCanBeNarrow) {
      if (narrow_last) multiply_tile<Format, kUsed, 32>(stage, activations, &used);
    }
#pragma unroll
    for (int b = 0; b < kUsed; ++b) {
#pragma unroll
      for (int i = 0; i < 4; ++i) sums->of[b][i] = used.of[b][i];
    }
  }

  // The same with activations from global memory.
  __device__ __forceinline__ void multiply_unstaged(const uint8_t* stage, uint32_t tile, uint32_t count,
                                                    bool narrow_last, const Tokens& tokens, Sums<kBlocks>* sums) {
#pragma unroll 1
    for (uint32_t i = 0; i < count; ++i) {
      const auto activations = [&](int b, int half) {
        return load_activations(place_of_lane(tokens, b), (tile + i) * (Format::kTileCols / 8) + half * 4 + lane_ % 4);
      };
      if constexpr (Format::kCanBeNarrow) {
        if (narrow_last && i + 1 == count) {
          multiply_tile<Format, kBlocks, 32>(stage, activations, sums);
          continue;
        }
      }
      multiply_tile<Format, kBlocks, Format::kTileCols>(stage, activations, sums);
      stage += Format::kTileBytes;
    }
  }

  // The warp's tiles of a phase: whole row tiles (whole within the block) are finished, parts go to shared memory.
  __device__ __forceinline__ void multiply_line() {
    const TileSizes sizes(matrix());
    TileLine line = warp_line(phase_);
    if (line.left == 0) return;
    // Whether the warp has the begin of its row tile; the block may itself have begun inside.
    bool whole = line.tile == 0 || warp_begin(warp_) == begin_;
    const bool ends_with_block = warp_begin(warp_ + 1) == end_;
    Tokens tokens = tokens_of(line.slot);
    Sums<kBlocks> sums;
#pragma unroll 1
    while (line.left != 0) {
      const uint32_t count = line.count(sizes);
      const bool narrow = is_narrow(line, count, sizes);
      const uint8_t* stage = stage_memory(stage_);
      ptx::ring_wait<Tuning::kStages>(full(stage_), parity_);
      if (!staged_) {
        multiply_unstaged(stage, line.tile, count, narrow, tokens, &sums);
      } else if (kBlocks > 1 && tokens.count <= 8) {
        multiply_stage<1>(stage, line.tile, count, narrow, tokens, &sums);
      } else {
        multiply_stage<kBlocks>(stage, line.tile, count, narrow, tokens, &sums);
      }
      __syncwarp();
      fetch(stage_);
      if (++stage_ == Tuning::kStages) {
        stage_ = 0;
        parity_ ^= 1;
      }
      const uint32_t slot = line.slot, row = line.row;
      const bool next_expert = line.advance(count, sizes);
      if (line.tile != 0 && line.left != 0) continue;
      if (whole && (line.tile == 0 || ends_with_block)) {
        finish(slot, row, tokens, sums);
      } else {
        store_partial(whole ? 1 : 0, sums);
      }
      whole = true;
      sums = Sums<kBlocks>{};
      if (next_expert && line.left != 0) tokens = tokens_of(line.slot);
    }
  }

  __device__ float4* partial(uint32_t warp, uint32_t which) const {
    return reinterpret_cast<float4*>(memory_ + Memory::kRing + (warp * 2 + which) * Memory::kPartial) + lane_;
  }
  __device__ void store_partial(uint32_t which, const Sums<kBlocks>& sums) {
#pragma unroll
    for (int b = 0; b < kBlocks; ++b) {
      partial(warp_, which)[b * 32] = make_float4(sums.of[b][0], sums.of[b][1], sums.of[b][2], sums.of[b][3]);
    }
  }

  // Row tiles that the block's warps share: the first warp whose begin lies inside sums the parts, in order.
  __device__ __forceinline__ void join_line() {
    const FewTokensMatrix& m = matrix();
    if (warp_ == 0 || begin_ == end_) return;
    const uint32_t cut = warp_begin(warp_), before = warp_begin(warp_ - 1);
    const TileLine at_cut(cut, cut, m);
    const uint32_t start = max(cut - at_cut.tile, begin_), stop = min(cut - at_cut.tile + m.tiles.divisor, end_);
    if (cut == start || cut >= stop || before > start) return;
    Sums<kBlocks> sums;
    for (uint32_t warp = warp_ - 1; warp < kWarps; ++warp) {
      const uint32_t from = warp_begin(warp), to = warp_begin(warp + 1);
      if (from >= stop) break;
      if (from == to || to <= start) continue;
#pragma unroll
      for (int b = 0; b < kBlocks; ++b) {
        const float4 part = partial(warp, from > start ? 0 : 1)[b * 32];
        sums.of[b][0] += part.x;
        sums.of[b][1] += part.y;
        sums.of[b][2] += part.z;
        sums.of[b][3] += part.w;
      }
    }
    finish(at_cut.slot, at_cut.row, tokens_of(at_cut.slot), sums);
  }

  __device__ float activate(float gate, float up) const {
    if (args_.gate == GateKind::kSilu) return __fdividef(gate, 1 + __expf(-gate)) * up;
    gate = fminf(gate, 7.0f);
    up = fminf(fmaxf(up, -7.0f), 7.0f);
    return __fdividef(gate, 1 + __expf(-1.702f * gate)) * (up + 1);
  }

  // Sums of a row tile: h of gate_up, or a row tile of down's sums.
  __device__ __forceinline__ void finish(uint32_t slot, uint32_t row, const Tokens& tokens, const Sums<kBlocks>& sums) {
    const FewTokensMatrix& m = matrix();
    const uint64_t expert = fixed_->map.active[slot];
    const float2 factor = *reinterpret_cast<const float2*>(m.factors + expert * 2);
    const uint32_t g = lane_ / 4;
    // A row tile of down that began in the block before: its end, without the bias.
    const uint32_t start = (slot * m.row_tiles.divisor + row) * m.tiles.divisor;
    const bool rest = phase_ == 1 && start < begin_;
    const uint32_t flag = flag_ | (phase_ == 1 && start + m.tiles.divisor > end_ ? 0x80000000u : 0);
    float bias_lower = 0, bias_upper = 0;
    if (m.bias != nullptr && !rest) {
      const float* bias = m.bias + expert * m.n + row * 16 + g;
      bias_lower = bias[0];
      bias_upper = bias[8];
    }
#pragma unroll
    for (int b = 0; b < kBlocks; ++b) {
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        const uint32_t token = b * 8 + lane_ % 4 * 2 + c;
        const float lower = sums.of[b][c] * Format::kSumFactor * factor.x + bias_lower;
        const float upper = sums.of[b][c + 2] * Format::kSumFactor * factor.y + bias_upper;
        const uint64_t place = tokens.first + token;
        if (phase_ == 0) {
          float h = __bfloat162float(__float2bfloat16_rn(activate(lower, upper)));
          if (Format::kScalesActivations) h *= 0x1p63f;
          const uint32_t mine = __bfloat16_as_ushort(__float2bfloat16_rn(h));
          const uint32_t next = __shfl_down_sync(0xFFFFFFFFu, mine, 4);  // of g + 1
          if (token < tokens.count && g % 2 == 0) {
            ptx::store_flagged(args_.hidden + place * (args_.intermediate / 2) + row * 4 + g / 2, mine | next << 16,
                               flag_);
          }
        } else if (token < tokens.count) {
          uint2* to = args_.sums + (rest ? plane() : 0) + place * args_.hidden_size + row * 16 + g;
          ptx::store_flagged(to, __float_as_uint(lower), flag);
          ptx::store_flagged(to + 8, __float_as_uint(upper), flag);
        }
      }
    }
  }
  __device__ uint64_t plane() const { return static_cast<uint64_t>(args_.tokens) * args_.topk * args_.hidden_size; }

  __device__ void combine() {
    const uint32_t pairs = args_.hidden_size / 2, threads = args_.blocks.divisor * kThreads;
    // Neighbouring threads, and so the columns of one token, are spread over the blocks a warp at a time.
    const uint32_t thread = (warp_ * args_.blocks.divisor + blockIdx.x) * 32 + lane_;
#pragma unroll 1
    for (uint32_t i = thread; i < args_.tokens * pairs; i += threads) {
      const uint32_t token = i / pairs, column = (i - token * pairs) * 2;
      const int32_t* places = fixed_->map.place + token * args_.topk;
      const uint2* at[kMoeTopKAtMost];
      uint4 begin[kMoeTopKAtMost], end[kMoeTopKAtMost];
      // All are asked for before the first is waited for, and nothing is asked for conditionally, or they would wait
      // for each other. Ends are ignored where there is none, the last choice is repeated up to the most there can be.
#pragma unroll
      for (uint32_t k = 0; k < kMoeTopKAtMost; ++k) {
        const int32_t place = max(places[min(k, args_.topk - 1)], 0);
        at[k] = args_.sums + column + static_cast<uint64_t>(place) * args_.hidden_size;
      }
#pragma unroll
      for (uint32_t k = 0; k < kMoeTopKAtMost; ++k) {
        begin[k] = ptx::load_flagged(at[k]);
        end[k] = ptx::load_flagged(at[k] + plane());
      }
      float2 sum = make_float2(0, 0);
#pragma unroll
      for (uint32_t k = 0; k < kMoeTopKAtMost; ++k) {
        if (k >= args_.topk || places[k] < 0) continue;
        while ((((begin[k].y ^ flag_) | (begin[k].w ^ flag_)) << 1) != 0) begin[k] = ptx::load_flagged(at[k]);
        float2 value = make_float2(__uint_as_float(begin[k].x), __uint_as_float(begin[k].z));
        if (begin[k].y != flag_) {
          while (((end[k].y ^ flag_) | (end[k].w ^ flag_)) != 0) end[k] = ptx::load_flagged(at[k] + plane());
          value.x += __uint_as_float(end[k].x);
          value.y += __uint_as_float(end[k].z);
        }
        const float weight = fixed_->map.weight[token * args_.topk + k];
        sum.x = fmaf(weight, value.x, sum.x);
        sum.y = fmaf(weight, value.y, sum.y);
      }
      const __nv_bfloat162 rounded = __floats2bfloat162_rn(sum.x, sum.y);
      *reinterpret_cast<__nv_bfloat162*>(args_.out + static_cast<uint64_t>(token) * args_.hidden_size + column) =
          rounded;
    }
  }

  const FewTokensArgs& args_;
  Fixed* fixed_;
  uint8_t* memory_;
  const uint32_t warp_, lane_;
  uint64_t policy_ = 0;
  uint32_t flag_ = 0;              // of this call
  uint32_t phase_ = 0;             // 0: gate_up, 1: down
  uint32_t begin_ = 0, end_ = 0;   // of the block's tiles in it
  TileLine ahead_;                 // what is fetched next
  const uint8_t* from_ = nullptr;  // where it is
  TileSizes ahead_sizes_;
  uint32_t ahead_phase_ = 0;
  uint32_t stage_ = 0, parity_ = 0;  // what is multiplied next
  uint32_t base_ = 0;                // place of the first staged row
  bool staged_ = true, by_token_ = false;
};

template <class Format, class Tuning, int kBlocks>
__global__ void __launch_bounds__(Tuning::kWarps * 32, 1)
    few_tokens_kernel(const __grid_constant__ FewTokensArgs args) {
  using Kernel = FewTokensKernel<Format, Tuning, kBlocks>;
  extern __shared__ __align__(128) uint8_t memory[];
  __shared__ typename Kernel::Fixed fixed;
  Kernel kernel(args, &fixed, memory);
  kernel.run();
}

}  // namespace nibble
