#!/usr/bin/env bash
# Installs what nibble is built and tested with, from Debian 12 alone. Says nothing and changes nothing when all of it
# is there, so every make target may call it. The versions that this gives are listed in ARCHITECTURE.md.
#
#   tools/setup.sh [PACKAGE…]     these packages instead
set -euo pipefail

packages=(
  g++ cmake ninja-build ccache pkg-config git python3 python3-venv
  # One newer clang for tidy, format, fuzzing and TSan: clang 14, Debian's default, cannot read g++ 12's library.
  clang-19 clang-tidy-19 clang-format-19 libclang-rt-19-dev lld-19
  nlohmann-json3-dev libcli11-dev libfmt-dev libspdlog-dev libre2-dev libxxhash-dev libssl-dev libicu-dev
  libgtest-dev libgmock-dev libbenchmark-dev
  # Training only. Debian builds libtorch with OpenCV and FFmpeg, hence the long list of what comes with it; the BLAS that
  # comes by default is the reference implementation, tens of times slower than OpenBLAS.
  libtorch-dev libopenblas0-pthread
)
if [ $# -gt 0 ]; then packages=("$@"); fi

# dpkg-query also fails for names it has never seen; what counts is which names it lists as installed.
installed=$(dpkg-query --show --showformat='${binary:Package} ${db:Status-Status}\n' "${packages[@]}" 2>/dev/null |
  sed -n 's/^\([^ :]*\)\(:[a-z0-9]*\)\{0,1\} installed$/\1/p' || true)
missing=()
for package in "${packages[@]}"; do
  grep -qxF "$package" <<<"$installed" || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "setup: these packages are missing and only root can install them: ${missing[*]}" >&2
    echo "setup: run as root: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "setup: installing ${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
