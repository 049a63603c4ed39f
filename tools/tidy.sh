#!/usr/bin/env bash
# clang-tidy over the files that changed (`changed`: since the merge base with origin/main, or since the last commit),
# or over the whole tree (`all`). A changed header is checked as the source that includes it alone (see
# nibble_check_headers in cmake/).
set -euo pipefail
cd "$(dirname "$0")/.."

# A build folder of its own, which is never built: precompiled headers are g++'s.
commands=build/tidy
cmake --preset release -B "$commands" -DNIBBLE_PRECOMPILE=OFF --log-level=WARNING >/dev/null

changed_files() {
  local base
  base=$(git merge-base HEAD origin/main 2>/dev/null || true)
  # On main itself there is nothing between the merge base and HEAD: compare with the commit before.
  if [ -z "$base" ] || [ "$base" = "$(git rev-parse HEAD)" ]; then
    base=$(git rev-parse --verify --quiet HEAD~1 || true)
  fi
  if [ -z "$base" ]; then
    echo "tidy: no earlier commit to compare with, so no file counts as changed" >&2
    return
  fi
  git diff --name-only --diff-filter=d "$base" -- '*.cc' '*.h'
  git ls-files --others --exclude-standard -- '*.cc' '*.h'
}

case "${1:-}" in
  changed) files=$(changed_files) ;;
  all) files=$(git ls-files --cached --others --exclude-standard -- '*.cc' '*.h') ;;
  *)
    echo "usage: tools/tidy.sh changed|all" >&2
    exit 2
    ;;
esac

units=()
while IFS= read -r file; do
  [ -e "$file" ] || continue
  case "$file" in
    src/*.h) unit="$commands"/header_check/$(sed 's|^src/||; s|[^A-Za-z0-9]|_|g' <<<"$file").cc ;;
    *.h) continue ;;
    *) unit=$file ;;
  esac
  # Files outside this configuration (fuzz targets, the canary) are not in the list of compile commands.
  if grep -qF "$unit\"" "$commands"/compile_commands.json; then units+=("$unit"); fi
done <<<"$files"
echo "tidy: ${#units[@]} files"
[ ${#units[@]} -eq 0 ] && exit 0
# The compile commands are g++'s: clang does not know two of its warnings, and g++ 12's library uses what C++17 deprecates.
printf '%s\0' "${units[@]}" |
  xargs -0 -n 1 -P "$(nproc)" clang-tidy-19 --quiet -p "$commands" --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-deprecated-declarations
