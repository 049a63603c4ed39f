# The CUDA language with the numeric contract of the host side: no contraction, no flush to zero, correctly rounded
# division and square root. The preset `cuda` turns it on; give the compiler with -DCMAKE_CUDA_COMPILER if it is not in
# PATH (tools/find_nvcc.sh finds or fetches one).
set(CMAKE_CUDA_ARCHITECTURES 80-real 90a-real 100a-real)
# PyPI's packages of the compiler are not laid out for linking, so CMake's test program cannot be built: skip it.
set(CMAKE_CUDA_COMPILER_WORKS ON)
enable_language(CUDA)
# Untested compilers are taken for C++14 ones, so the option for C++20 is spelled out.
set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
target_compile_options(nibble_flags INTERFACE
  "$<$<COMPILE_LANGUAGE:CUDA>:--fmad=false;--ftz=false;--prec-div=true;--prec-sqrt=true;--Werror=all-warnings>")
