#!/usr/bin/env bash
# The stages of `make test` and `make check` that are more than a test program: other compilers, sanitizers, fuzzing.
# ctest runs them (tests/CMakeLists.txt) after the release build; each also runs alone:
#
#   tools/stage.sh headers             every header compiles alone
#   tools/stage.sh sanitize asan|tsan MODULE…   builds and runs the tests of these modules, or of `all`
#   tools/stage.sh fuzz SECONDS        every fuzz target for so long, from its corpus
#   tools/stage.sh tidy changed|all    clang-tidy
#   tools/stage.sh cuda                all .cu files compile for every architecture that nibble names, and no kernel spills
#   tools/stage.sh canary              an outside project adds a row to every list
#   tools/stage.sh field               the field's own libraries read what nibble writes
#   tools/stage.sh browser             the pages of `plan --html` and `certify --html` in a headless Chromium
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=$(nproc)

configure() { cmake --preset "$1" --log-level=WARNING >/dev/null; }

headers() { cmake --build build/release --target header_checks -j "$jobs"; }

sanitize() {
  local preset=$1
  shift
  local targets=("${@/%/_tests}") select=(-L "^($(IFS='|' && echo "$*"))\$")
  if [ "$*" = all ]; then targets=(all) select=(); fi
  configure "$preset"
  cmake --build "build/$preset" --target "${targets[@]}" -j "$jobs"
  # A gate or a stage has nothing to gain from a sanitizer.
  ctest --test-dir "build/$preset" "${select[@]}" -LE '^(gate|stage)$' --no-tests=error --output-on-failure -j "$jobs"
}

fuzz_one() {
  local name=$1 seconds=$2
  local found=build/fuzz/corpus/$name log=build/fuzz/$name.log
  mkdir -p "$found" build/fuzz/artifacts
  local options=(-max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -max_len=65536 -print_final_stats=1
    -artifact_prefix="build/fuzz/artifacts/$name-")
  if [ -e "tests/fuzz/$name.dict" ]; then options+=(-dict="tests/fuzz/$name.dict"); fi
  local seeds=("tests/fuzz/corpus/$name")
  if [ -e "tests/fuzz/$name.seeds" ]; then mapfile -t -O 1 seeds <"tests/fuzz/$name.seeds"; fi
  if ! "build/asan/tests/fuzz/$name" "${options[@]}" "$found" "${seeds[@]}" >"$log" 2>&1; then
    tail -n 60 "$log"
    echo "fuzz: $name failed; the input is in build/fuzz/artifacts, the log in $log"
    return 1
  fi
  echo "fuzz: $name, $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs in $seconds s"
}

fuzz() {
  configure asan  # its libraries carry coverage feedback already
  cmake --build build/asan --target fuzzers -j "$jobs"
  export -f fuzz_one
  printf '%s\0' tests/fuzz/*.cc | xargs -0 -n 1 basename -s .cc |
    xargs -n 1 -P "$jobs" bash -c 'fuzz_one "$1" "$0"' "$1"
}

cuda() {
  local nvcc
  nvcc=$(tools/find_nvcc.sh)
  cmake --preset cuda --log-level=WARNING -DCMAKE_CUDA_COMPILER="$nvcc" >/dev/null
  cmake --build build/cuda --target cuda_compile nibble_kernels_cuda -j "$jobs"
}

canary() {
  cmake -S tests/canary -B build/canary -G Ninja --log-level=WARNING -DNIBBLE_BUILD="$PWD/build/release" >/dev/null
  cmake --build build/canary -j "$jobs"
  ctest --test-dir build/canary --no-tests=error --output-on-failure
}

field() { tools/check_field.sh; }

# Chromium is large and nothing else needs it: it is installed here and not with everything else.
browser() {
  tools/setup.sh chromium
  local test
  for test in tests/browser/test_*_page.py; do NIBBLE=build/release/nibble "$test"; done
}

case "${1:-}" in
  headers | sanitize | fuzz | cuda | canary | field | browser) "$@" ;;
  tidy) tools/tidy.py "${2:-changed}" ;;
  *)
    sed -n '5,12s/^#   //p' "$0" >&2
    exit 2
    ;;
esac
