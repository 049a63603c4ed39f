# One set of compiler rules for the whole tree. Numeric code must give the same bits on every machine, so contraction
# and value-changing optimisations are off everywhere, not only where somebody remembered.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
# -O3 is for the loops over weights (HOT_LOOPS of nibble_module); elsewhere it only costs compile time.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
# Without any optimization g++ makes macros of intrinsics, and those do not pass our warnings.
set(CMAKE_CXX_FLAGS_DEBUG "-Og -g")

add_library(nibble_flags INTERFACE)
set(NIBBLE_CXX_FLAGS
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Woverloaded-virtual -Werror
  -ffp-contract=off -fno-fast-math -fno-unsafe-math-optimizations -pthread)
target_compile_options(nibble_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${NIBBLE_CXX_FLAGS}>")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 reports false positives of these inside its own library headers at -O2.
  target_compile_options(nibble_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict;-Wno-maybe-uninitialized;-Wno-stringop-overflow>")
else()
  # libstdc++ 12's stable_sort calls what it deprecates itself.
  target_compile_options(nibble_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-Wno-deprecated-declarations>")
endif()
target_include_directories(nibble_flags INTERFACE ${CMAKE_SOURCE_DIR}/src)
if(NIBBLE_SANITIZE)
  target_compile_options(nibble_flags INTERFACE -fsanitize=${NIBBLE_SANITIZE} -fno-sanitize-recover=all
                         -fno-omit-frame-pointer)
  target_link_options(nibble_flags INTERFACE -fsanitize=${NIBBLE_SANITIZE})
endif()
if(NIBBLE_FUZZ)
  # Coverage feedback from every library, a main() only in the targets.
  target_compile_options(nibble_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

find_program(NIBBLE_CCACHE ccache)
if(NIBBLE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${NIBBLE_CCACHE})
endif()
