# nibble_module(NAME [HOT_LOOPS] [ONE_TEST] [DEPENDS module…] [LIBS library…] [PRECOMPILE header…])
#
# One static library per folder of src/nibble, from the .cc files in it and below. `*_test.cc` beside a source becomes
# part of the module's one test program; `*_avx2.cc`, `*_avx512.cc` … are compiled for that instruction set (and only
# those: everything else must run on any x86-64). `main.cc` and `shared_object.cc` are left to whoever links them. The
# target NAME_tests builds the test program, whether or not there is one yet. HOT_LOOPS: the module's time goes into its
# own loops, so a release build optimizes them further. ONE_TEST: one process for all cases, for programs that take longer
# to start than to test. PRECOMPILE: headers of LIBS that cost as much as those below, as in <a/b.h>.
#
# GoogleTest and nlohmann-json are half of the compile time: their headers are compiled once a module. Sources include
# what they use all the same; the header checks and clang-tidy hold them to it.
include(GoogleTest)
option(NIBBLE_PRECOMPILE "Compile the headers of GoogleTest and nlohmann-json once a module" ON)

set(NIBBLE_ISA_avx2 -mavx2 -mfma -mf16c -mbmi2)
set(NIBBLE_ISA_avx512 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vbmi -mavx2 -mfma -mf16c -mbmi2)
# g++ 12 takes the undefined operand that its own AVX-512 headers pass for a mistake of whoever calls them.
list(APPEND NIBBLE_ISA_avx512 -Wno-uninitialized)
set(NIBBLE_ISA_avx512vnni ${NIBBLE_ISA_avx512} -mavx512vnni)
set(NIBBLE_ISA_avx512bf16 ${NIBBLE_ISA_avx512} -mavx512bf16)
set(NIBBLE_ISA_amx ${NIBBLE_ISA_avx512} -mamx-tile -mamx-int8)
set(NIBBLE_ISA_avxvnni ${NIBBLE_ISA_avx2} -mavxvnni)
set(NIBBLE_ISA_shani -msha -msse4.1)

add_custom_target(header_checks)

function(nibble_set_isa FILES)
  foreach(file IN LISTS FILES)
    if(file MATCHES "_(avx2|avxvnni|avx512|avx512vnni|avx512bf16|amx|shani)(_h)?\\.cc$")
      set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "${NIBBLE_ISA_${CMAKE_MATCH_1}}"
                                                     SKIP_PRECOMPILE_HEADERS ON)
    endif()
  endforeach()
endfunction()

function(nibble_module NAME)
  cmake_parse_arguments(ARG "HOT_LOOPS;ONE_TEST" "" "DEPENDS;LIBS;PRECOMPILE" ${ARGN})
  file(GLOB_RECURSE all CONFIGURE_DEPENDS *.cc)
  set(sources ${all})
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "/(main|shared_object)\\.cc$")
  set(tests ${all})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  nibble_set_isa("${sources}")
  set(deps ${ARG_DEPENDS})
  list(TRANSFORM deps PREPEND nibble_)
  if(sources)
    add_library(nibble_${NAME} STATIC ${sources})
    target_link_libraries(nibble_${NAME} PUBLIC nibble_flags ${deps} PRIVATE ${ARG_LIBS})
    if(ARG_HOT_LOOPS)
      target_compile_options(nibble_${NAME} PRIVATE "$<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O3>")
    endif()
    if(NIBBLE_PRECOMPILE)
      target_precompile_headers(nibble_${NAME} PRIVATE <nlohmann/json.hpp> ${ARG_PRECOMPILE})
    endif()
  else()
    add_library(nibble_${NAME} INTERFACE)
    target_link_libraries(nibble_${NAME} INTERFACE nibble_flags ${deps})
  endif()
  if(NIBBLE_TESTS)
    nibble_module_tests(${NAME} "${tests}" "${ARG_LIBS}" "${ARG_PRECOMPILE}" "${ARG_ONE_TEST}")
  endif()
  nibble_check_headers(${NAME} "${ARG_LIBS}")
endfunction()

# All test programs share one set of precompiled headers, but for those that have more of them.
function(nibble_precompile_test TARGET)
  if(NOT TARGET nibble_test_headers)
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/test_headers.cc CONTENT "// Precompiled headers need a source.\n")
    add_library(nibble_test_headers OBJECT ${CMAKE_BINARY_DIR}/test_headers.cc)
    target_link_libraries(nibble_test_headers PRIVATE nibble_flags GTest::gmock GTest::gtest_main Threads::Threads nlohmann_json::nlohmann_json)
    # As for programs: precompiled headers serve only sources with the same options.
    set_target_properties(nibble_test_headers PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(nibble_test_headers PRIVATE -fPIE)
    target_precompile_headers(nibble_test_headers PRIVATE <gmock/gmock.h> <gtest/gtest.h> <nlohmann/json.hpp>)
  endif()
  target_precompile_headers(${TARGET} REUSE_FROM nibble_test_headers)
endfunction()

function(nibble_module_tests NAME TESTS LIBS PRECOMPILE ONE_TEST)
  add_custom_target(${NAME}_tests)
  if(NOT TESTS)
    return()
  endif()
  add_executable(${NAME}_test ${TESTS})
  target_link_libraries(${NAME}_test PRIVATE nibble_${NAME} nibble_testing GTest::gmock GTest::gtest_main ${LIBS})
  target_compile_definitions(${NAME}_test PRIVATE NIBBLE_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  add_dependencies(${NAME}_tests ${NAME}_test)
  if(NIBBLE_PRECOMPILE AND PRECOMPILE)
    target_precompile_headers(${NAME}_test PRIVATE <gmock/gmock.h> <gtest/gtest.h> <nlohmann/json.hpp> ${PRECOMPILE})
  elseif(NIBBLE_PRECOMPILE)
    nibble_precompile_test(${NAME}_test)
  endif()
  if(NIBBLE_SANITIZE OR ONE_TEST)
    # Starting a sanitized program a thousand times costs more than the tests.
    add_test(NAME ${NAME} COMMAND ${NAME}_test --gtest_brief=1)
    set_tests_properties(${NAME} PROPERTIES LABELS ${NAME} TIMEOUT 1200 ENVIRONMENT NIBBLE_TUNING=none)
  else()
    gtest_discover_tests(${NAME}_test TEST_PREFIX ${NAME}. DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
                         PROPERTIES LABELS ${NAME} TIMEOUT 300 ENVIRONMENT NIBBLE_TUNING=none)
  endif()
endfunction()

# Every header compiles alone: one generated source per header that includes nothing else. Not part of `all`; the target
# header_checks builds them. clang-tidy reads headers through the same sources.
function(nibble_check_headers NAME LIBS)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS *.h)
  set(units)
  foreach(header IN LISTS headers)
    file(RELATIVE_PATH relative ${CMAKE_SOURCE_DIR}/src ${header})
    string(MAKE_C_IDENTIFIER ${relative} id)
    set(unit ${CMAKE_BINARY_DIR}/header_check/${id}.cc)
    file(CONFIGURE OUTPUT ${unit} CONTENT "#include \"${relative}\" // IWYU pragma: keep\n")
    list(APPEND units ${unit})
  endforeach()
  if(units)
    nibble_set_isa("${units}")
    add_library(header_check_${NAME} OBJECT EXCLUDE_FROM_ALL ${units})
    target_link_libraries(header_check_${NAME} PRIVATE nibble_flags ${LIBS})
    add_dependencies(header_checks header_check_${NAME})
  endif()
endfunction()

# Links `target` with the modules whose headers `source` includes: fuzz targets and benchmarks are one file each and
# should not build more than they name.
function(nibble_link_included TARGET SOURCE)
  file(STRINGS ${SOURCE} lines REGEX "^#include \"nibble/")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^#include \"nibble/([a-z_]+)/.*" "nibble_\\1" module "${line}")
    target_link_libraries(${TARGET} PRIVATE ${module})
  endforeach()
endfunction()
