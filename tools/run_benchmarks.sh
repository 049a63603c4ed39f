#!/usr/bin/env bash
# What `make bench` does: builds nibble and the benchmarks in BUILD and measures (bench/run.py says what).
#
#   tools/run_benchmarks.sh [BUILD [OPTION of bench/run.py…]]     default: build/bench, all parts
#
# The part `peers` needs the Python libraries (tools/oracles/setup.sh, 2 to 5 GB) and llama.cpp
# (bench/peers/build_llama_cpp.sh, 7 minutes on two cores); both are made the first time.
set -euo pipefail
cd "$(dirname "$0")/.."
if [[ ${1:-} == -* ]]; then
  sed -n '2,/^set/s/^# \{0,1\}//p' tools/run_benchmarks.sh >&2
  [[ $1 == --help || $1 == -h ]] && exit 0
  exit 2
fi
build=${1:-build/bench}
[ $# -eq 0 ] || shift

cmake --build "$build" --target benchmarks nibble make_moe -j "$(nproc)" >/dev/null

# --part takes words up to the next option; without it, all parts run.
wanted=" $* "
if [[ $wanted != *" --part "* || $wanted == *" peers "* ]]; then
  tools/oracles/setup.sh
  bench/peers/build_llama_cpp.sh
fi
exec python3 bench/run.py "$build" "$@"
