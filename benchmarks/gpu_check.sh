#!/usr/bin/env bash
# Does a GPU do what the tests prove on the CPU, how fast, in how much memory? Under 8 minutes on one GPU, no network, no pretrained
# weights: a random Qwen3-VL at the width of the 8B model with few layers, on 1080p keyframes. One table at the end.
#
#   benchmarks/gpu_check.sh            on a machine with a GPU
#   benchmarks/gpu_check.sh --small    the same lines on a CPU, with a tiny model: only tells that they run
set -euo pipefail
cd "$(dirname "$0")/.."
export HF_HUB_OFFLINE=1
exec "${PYTHON:-python}" benchmarks/gpu_check.py "$@"
