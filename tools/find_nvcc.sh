#!/usr/bin/env bash
# Prints the path of a CUDA compiler on standard output, and on standard error where it comes from: PATH, the place of
# NVIDIA's own installer, or a virtual environment under build/ with the compiler's wheels from PyPI.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { echo "CUDA compiler: $1 ($2, $("$1" --version | sed -n 's/.*release \([0-9.]*\).*/release \1/p'))" >&2; }

if nvcc=$(command -v nvcc); then
  say "$nvcc" "from PATH"
elif [ -x /usr/local/cuda/bin/nvcc ]; then
  nvcc=/usr/local/cuda/bin/nvcc
  say "$nvcc" "the machine's own"
else
  venv=$PWD/build/nvcc
  nvcc=$venv/lib/python3.11/site-packages/nvidia/cu13/bin/nvcc
  if [ ! -e "$venv/complete" ]; then
    rm -rf "$venv"
    /usr/bin/python3 -m venv "$venv"
    if ! "$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps nvidia-cuda-nvcc==13.0.88 \
      nvidia-cuda-crt==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.0.85; then
      echo "CUDA compiler: none in PATH, and PyPI's packages of it cannot be installed. Try: put nvcc in PATH" >&2
      exit 1
    fi
    touch "$venv/complete"
  fi
  say "$nvcc" "from PyPI's packages"
fi
echo "$nvcc"
