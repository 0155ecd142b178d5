#!/usr/bin/env bash
# Prints ON where a GPU of NVIDIA and nvcc are seen, else OFF; says on stderr what a machine with a GPU lacks.
set -u
if ! compgen -G '/dev/nvidia[0-9]*' >/dev/null; then
  echo OFF
elif command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ] || [ -x "${CUDA_HOME:-/nonexistent}/bin/nvcc" ]; then
  echo ON
else
  echo "holmes: there is a GPU but no nvcc, so the CPU engine alone is built; install CUDA 13 and remove build/serve to change that" >&2
  echo OFF
fi
