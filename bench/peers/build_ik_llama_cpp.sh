#!/usr/bin/env bash
# Builds ik_llama.cpp's benchmark from the sources in PyPI's package ik-llama-cpp-python, for this machine's CPU, into
# build/peers/ik_llama.cpp (about 15 minutes on two cores). Does nothing if it is there.
set -euo pipefail
cd "$(dirname "$0")/../.."
dir=build/peers/ik_llama.cpp
[ -x "$dir/bin/llama-bench" ] && exit 0
source=$(bench/peers/fetch_source.sh ik-llama-cpp-python 0.1.5)/vendor/ik_llama.cpp
# The package leaves out the script that writes down what was built; it says no more than that here.
script=$source/common/cmake/build-info-gen-cpp.cmake
if [ ! -e "$script" ]; then
  mkdir -p "$(dirname "$script")"
  cat >"$script" <<'CMAKE'
foreach(what COMMIT COMPILER TARGET)
  set(BUILD_${what} "unknown")
endforeach()
set(BUILD_NUMBER 0)
set(folder "${CMAKE_CURRENT_LIST_DIR}/..")
configure_file("${folder}/build-info.cpp.in" "${folder}/build-info.cpp" @ONLY)
CMAKE
fi
cmake -G Ninja -S "$source" -B "$dir" -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON -DGGML_IQK_FA_ALL_QUANTS=OFF \
  -DLLAMA_CURL=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_SERVER=OFF >/dev/null
cmake --build "$dir" --target llama-bench
