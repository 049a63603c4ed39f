#!/usr/bin/env bash
# The field's own libraries read what nibble writes: every family, format and layout (tools/field_check.py), what other
# libraries wrote (tools/field_read.py), and a real GGUF model (tools/field_smollm2.py), which the engine runs beside
# transformers (tools/field_smollm2_engine.py). Part of `make check`; needs build/release/nibble and, once, the packages
# that tools/oracles/setup.sh fetches (2 to 5 GB).
#
#   tools/check_field.sh [PART…]     PART: self-test families read smollm2 engine (default: all)
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
nibble=build/release/nibble
python=build/oracles/bin/python
parts=("$@")
if [ ${#parts[@]} -eq 0 ]; then parts=(self-test families read smollm2 engine); fi

if [ ! -x "$nibble" ]; then
  echo "check_field: $nibble is not there; run \`make build\` first" >&2
  exit 1
fi
tools/oracles/setup.sh || exit 1

failed=()
for part in "${parts[@]}"; do
  printf '\n== %s\n' "$part"
  case $part in
    self-test) "$python" tools/field_check.py self-test ;;
    families) "$python" tools/field_check.py all --nibble "$nibble" --work build/field_check ;;
    read) "$python" tools/field_read.py --nibble "$nibble" ;;
    smollm2) "$python" tools/fetch_smollm2.py >/dev/null && "$python" tools/field_smollm2.py --nibble "$nibble" ;;
    engine) "$python" tools/fetch_smollm2.py >/dev/null && "$python" tools/field_smollm2_engine.py --nibble "$nibble" ;;
    *)
      sed -n '7s/^#   //p' "$0" >&2
      exit 2
      ;;
  esac || failed+=("$part")
done
if [ ${#failed[@]} -gt 0 ]; then
  printf '\ncheck_field: failed: %s\n' "${failed[*]}"
  exit 1
fi
printf '\ncheck_field: all good\n'
