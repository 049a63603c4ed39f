// Numeric functions marked NIBBLE_HD compile for the host and, under nvcc, for the device: one source, the same bits.
//
// The mark stands first in a declaration and includes `inline`. Functions are always inlined: the files of simd/ are
// compiled for more than the baseline processor, and a copy of a header's function emitted there must never be the one
// that the linker keeps for everybody. Device code needs --fmad=false and -ftz=false for the same bits.
#pragma once

#if defined(__CUDACC__)
#define NIBBLE_HD __host__ __device__ __forceinline__
#else
#define NIBBLE_HD inline __attribute__((always_inline))
#endif
