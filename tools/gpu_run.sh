#!/usr/bin/env bash
# Runs everything that needs a GPU and leaves what it found in a folder: conformance, compute-sanitizer's four tools on small
# shapes, and the benchmarks as JSON.
#
#   cmake --preset cuda && cmake --build build/cuda --target gpu_programs
#   tools/gpu_run.sh build/cuda/gpu bench/results/h200 [COMMIT]
#
# The programs may be built elsewhere and brought along. Exit 1 if anything failed, 77 where there is no GPU.
set -uo pipefail
bin=$1 out=$2 commit=${3:-$(git rev-parse --short HEAD 2>/dev/null || echo unknown)}
mkdir -p "$out"
failed=0

run() {
  local log=$out/$1
  shift
  "$@" >"$log" 2>&1
  local code=$?
  echo "exit $code: $* ($log)"
  if [ $code -eq 77 ]; then exit 77; fi
  if [ $code -ne 0 ]; then failed=1; fi
}

nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem,clocks.max.sm --format=csv >"$out/gpu.csv"
run conformance.txt "$bin/moe_conformance"
if command -v compute-sanitizer >/dev/null; then
  # Every warp of every block has barriers of its own, more than synccheck tracks unasked.
  for tool in memcheck racecheck initcheck "synccheck --num-cuda-barriers 16384"; do
    # shellcheck disable=SC2086
    run "${tool%% *}.txt" compute-sanitizer --tool $tool --error-exitcode 1 "$bin/moe_conformance" --small
    tail -n 1 "$out/${tool%% *}.txt"
  done
else
  echo "skipped: compute-sanitizer is not installed"
fi
if "$bin/moe_bench" --commit "$commit" >"$out/moe_layer.json"; then
  python3 - "$out/moe_layer.json" <<'PYTHON'
import json, sys
for row in json.load(open(sys.argv[1]))["rows"]:
    print(f'{row["shape"]:14} {row["format"]:10} T={row["tokens"]:<3} {row["us"]:8.2f} us {row["percent_of_floor"]:5.1f} % '
          f'error {row["check_error"]:.1e} {row["kernel"]}')
PYTHON
else
  failed=1
fi
exit $failed
