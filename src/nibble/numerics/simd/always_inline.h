// How the small functions of the vector loops are declared: without being inlined a template over intrinsics is neither
// quick nor, for arguments wider than the caller's instruction set, legal.
#pragma once

#define NIBBLE_VEC static inline __attribute__((always_inline))
