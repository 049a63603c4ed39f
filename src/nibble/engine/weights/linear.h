// One matrix of a layer, ready to be multiplied: its tiles, its kernels, and a bias.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "nibble/base/slab.h"
#include "nibble/base/thread_pool.h"
#include "nibble/checkpoint/weight_table.h"
#include "nibble/kernels/select.h"

namespace nibble {

// What the user decides about arithmetic; part of what a certificate certifies.
struct Arithmetics {
  // Of integer weights (E2M1 counts as such), or of blocks of E2M1; other weights always meet float32.
  ActivationKind integer_activations = ActivationKind::kF32;
  // Of what meets float32 products: kE4M3 where the weights are E4M3 too, kBF16 everywhere.
  ActivationRounding rounding = ActivationRounding::kNone;
  std::string kernel;  // forces kernels of this name; "": the quickest
};

struct Linear {
  SharedBytes storage;
  ResidentMatrix matrix;                 // data inside storage
  const KernelChoice* choice = nullptr;  // the kernels for any number of tokens
  ActivationKind activations = ActivationKind::kF32;
  ActivationRounding rounding = ActivationRounding::kNone;
  std::vector<float> bias;  // empty: none

  uint64_t rows() const { return matrix.layout.n; }
  uint64_t cols() const { return matrix.layout.k; }
  bool present() const { return choice != nullptr; }
  // "avx512-vnni", or several where that depends on the number of tokens.
  std::string_view kernel_name() const { return choice->name; }
};

// The layout of `rows` of a stored weight's rows. Error naming file and tensor where no kernel multiplies the format,
// with the `nibble quantize` command that converts it.
WeightLayout layout_of(const Checkpoint& checkpoint, const Weight& weight, uint64_t rows);

// Rows row_begin, row_begin + stride … of a slice of a stored weight.
struct RowPick {
  uint64_t slice = 0, begin = 0, stride = 1, count = 0;
};

// How weights are loaded, and where to.
struct LoadOptions {
  Arithmetics arithmetic;
  ThreadPool* pool = nullptr;
  Slab* slab = nullptr;
};

// Reads, packs and chooses a kernel; on all threads of the pool. Errors as layout_of(). May be called by several
// threads.
Linear load_linear(const Checkpoint& checkpoint, const Weight& weight, const RowPick& pick, const LoadOptions& how);
// The whole weight, a matrix.
Linear load_linear(const Checkpoint& checkpoint, const Weight& weight, const LoadOptions& how);
// A matrix of float32 values (N, K) of our own making, kept in 16 bits where all of them are exact there.
Linear make_linear(const std::vector<float>& values, uint64_t rows, uint64_t cols, const LoadOptions& how);

// Chooses the kernel of a matrix that is packed already.
void set_kernel(const Arithmetics& how, Linear* linear);

// A row as float32: what embeddings are looked up by. `out` has cols() floats.
void read_row(const ResidentMatrix& matrix, uint64_t row, float* out);

}  // namespace nibble
