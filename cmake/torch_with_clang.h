// Lets clang read libtorch 1.13 as C++20: before every source that includes torch's headers, for sanitizers and
// clang-tidy alone.
//
// torch names functions of std::vector<IValue> where IValue is only declared. In C++20 these functions are constexpr,
// and clang makes a constexpr function where it is named, g++ (and both in C++17) at the end. So libstdc++'s vector is
// read without constexpr here. Names and layout stay the same.
#pragma once
#pragma clang system_header

// What <vector> needs, with constexpr as always.
#include <bits/allocator.h>
#include <bits/functional_hash.h>
#include <bits/range_access.h>
#include <bits/refwrap.h>
#include <bits/stl_algobase.h>
#include <bits/stl_construct.h>
#include <bits/stl_uninitialized.h>
#include <debug/debug.h>

#include <initializer_list>
#include <memory>
#include <string>

#pragma push_macro("_GLIBCXX20_CONSTEXPR")
#undef _GLIBCXX20_CONSTEXPR
#define _GLIBCXX20_CONSTEXPR
// Of vector<bool>: stl_algobase.h has declared it constexpr already.
#define __fill_a1 fill_bits_of_vector
#include <vector>
#undef __fill_a1
#pragma pop_macro("_GLIBCXX20_CONSTEXPR")

namespace std {
// The one that stl_algobase.h declares: constexpr is no longer possible, so the definition comes by its linker name.
__attribute__((used)) inline void define_fill_a1(_Bit_iterator first, _Bit_iterator last,
                                                 const bool& value) __asm__("_ZSt9__fill_a1St13_Bit_iteratorS_RKb");
inline void define_fill_a1(_Bit_iterator first, _Bit_iterator last, const bool& value) {
  fill_bits_of_vector(first, last, value);
}
}  // namespace std
