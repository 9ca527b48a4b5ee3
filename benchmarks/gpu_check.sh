#!/bin/bash
# The GPU-only checks, in under 6 minutes on one CUDA device: the tests that carry the marker gpu, then
# benchmarks/gpu_check.py, which ends in a table. Exit code 0 where everything holds.
#
#   bash benchmarks/gpu_check.sh [--dry]      # --dry: tiny, on a CPU, to see that the script works
set -uo pipefail
cd "$(dirname "$0")/.."
export PYTHONPATH=$PWD HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false
export CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES:-0}

status=0
python -m pytest -m gpu -q tests || status=$?
timeout 330 python -m benchmarks.gpu_check "$@" || status=$?
exit "$status"
