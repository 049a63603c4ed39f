// Numeric headers marked NIBBLE_HD compile for the host and, under nvcc, for the device: one source, the same bits.
#pragma once

#if defined(__CUDACC__)
#define NIBBLE_HD __host__ __device__
#else
#define NIBBLE_HD
#endif
