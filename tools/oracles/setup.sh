#!/usr/bin/env bash
# Make build/oracles, the Python environment that the oracle scripts run in (about 2 GB on a machine with CUDA 13,
# 5 GB on one without). Does nothing, in well under a second, when the environment already matches requirements.txt.
#
#   tools/oracles/setup.sh && build/oracles/bin/python tools/make_goldens.py
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
list=$here/requirements.txt
env=$(cd "$here/../.." && pwd)/build/oracles
stamp=$env/requirements.installed

if [ "${1:-}" = --help ] || [ "${1:-}" = -h ]; then
  sed -n '2,5s/^# \{0,1\}//p' "$0"
  exit 0
fi
if cmp -s "$list" "$stamp"; then
  echo "oracles: ready in $env"
  exit 0
fi

group() {  # the requirements under the heading "# NAME"
  awk -v name="# $1" '/^# /{on = index($0, name) == 1} on && /^[a-zA-Z]/' "$list"
}

[ -x "$env/bin/python" ] || "${PYTHON:-python3}" -m venv "$env"
install() {  # pip reports the dependencies that are left out on purpose as conflicts; they are not errors here
  "$env/bin/python" -m pip --quiet --disable-pip-version-check install "$@" \
    2> >(grep -v -e 'which is not installed' -e 'dependency resolver' >&2)
}

mapfile -t alone < <(group "alone")
mapfile -t with < <(group "with")
install --no-deps "${alone[@]}"
install "${with[@]}"

wheel_for() {  # shared library name -> requirement that brings it
  local pin; pin=$(group "on demand" | grep cuda-toolkit)
  case $1 in
    libcudnn*) group "on demand" | grep cudnn ;;
    libnccl*) group "on demand" | grep nccl ;;
    libcublas*) echo "${pin/==/[cublas]==}" ;;
    libcudart*) echo "${pin/==/[cudart]==}" ;;
    libcufft*) echo "${pin/==/[cufft]==}" ;;
    libcupti*) echo "${pin/==/[cupti]==}" ;;
    libcurand*) echo "${pin/==/[curand]==}" ;;
    libcusolver*) echo "${pin/==/[cusolver]==}" ;;
    libcusparse*) echo "${pin/==/[cusparse]==}" ;;
    libnvJitLink*) echo "${pin/==/[nvjitlink]==}" ;;
    libnvrtc*) echo "${pin/==/[nvrtc]==}" ;;
    *) return 1 ;;
  esac
}

# torch loads the CUDA libraries even on the CPU. It names one missing library at a time.
for _ in $(seq 16); do
  if error=$("$env/bin/python" -c 'import torch, torch.linalg; torch.linalg.inv(torch.eye(2))' 2>&1); then break; fi
  missing=$(grep -oE 'lib[A-Za-z]+\.so' <<<"$error" | tail -1 || true)
  if [ -z "$missing" ] || ! wheel=$(wheel_for "$missing"); then
    echo "oracles: torch does not import and no known package brings what it misses:" >&2
    echo "$error" >&2
    exit 1
  fi
  echo "oracles: torch misses $missing, installing $wheel"
  install "$wheel"
done

"$env/bin/python" -c 'import torch, transformers, compressed_tensors, modelopt.torch.quantization, ml_dtypes, gguf, safetensors, accelerate' 2>/dev/null ||
  { echo "oracles: an import fails; run $env/bin/python and import the packages one by one" >&2; exit 1; }
cp "$list" "$stamp"
echo "oracles: ready in $env"
