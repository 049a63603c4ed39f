// How a checkpoint is cut into pieces of work for scan_weights: large sequential reads, in the order in which the bytes
// lie on disk, each of at most 4 MiB of codes.
#pragma once

#include <cstdint>
#include <vector>

#include "nibble/checkpoint/weight_table.h"
#include "nibble/verify/weight_stats.h"

namespace nibble {

enum class ScanKind : uint8_t {
  kHash,    // a whole file
  kRows,    // rows of a quantized weight, through its convention
  kBytes,   // bytes of a dense (or opaque) weight
  kScales,  // bytes of a part that holds scales
};

struct ScanPiece {
  ScanKind kind = ScanKind::kBytes;
  PartKind part = PartKind::kCodes;  // kScales: which
  bool partial = false;              // quick: the rest of this weight is not read
  bool scales_apart = false;         // kRows: the weight's scales have pieces of their own
  uint32_t weight = 0;
  uint32_t tensor = 0;  // kBytes, kScales: the stored tensor
  uint32_t file = 0;
  uint64_t position = 0;  // where in the file, for the order
  uint64_t slice = 0;     // of the weight
  uint64_t begin = 0;     // first row, or first byte of the stored tensor
  uint64_t count = 0;     // rows or bytes
  uint64_t bytes = 0;     // to be read, for progress
};

std::vector<ScanPiece> plan_scan(const Checkpoint& checkpoint, const WeightTable& table, const ScanOptions& options);

// Whether slices of a stack are worth telling apart (a convolution's are not).
bool has_slices(const Weight& weight);

}  // namespace nibble
