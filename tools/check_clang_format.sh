#!/usr/bin/env bash
# Every C++ and CUDA file of the tree is formatted as .clang-format says; --fix formats them instead of complaining.
set -euo pipefail
cd "$(dirname "$0")/.."
how=(--dry-run --Werror)
[ "${1:-}" = --fix ] && how=(-i)
git ls-files -z --cached --others --exclude-standard '*.cc' '*.h' '*.cu' '*.cuh' ':!third_party' |
  xargs -0 --no-run-if-empty -n 16 -P "$(nproc)" clang-format-19 "${how[@]}"
