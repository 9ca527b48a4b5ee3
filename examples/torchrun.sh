#!/bin/bash
# Predict on all GPUs of several nodes that share a file system; rank 0 publishes.
#
#   sbatch examples/torchrun.sh
#   sbatch --nodes=4 examples/torchrun.sh -S predict.dtype=bfloat16   # arguments go to predict
#
# On one machine without SLURM:  torchrun --nproc-per-node 8 -m stages.predict
# Nodes without a shared file system take a shard each, and merge: see docs/running.md.
#SBATCH --job-name=twophase
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=32
#SBATCH --time=04:00:00
set -euo pipefail

# The first of them, without a pipe that would be cut short.
read -r head_node < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
# A port of this job's own, since another job may run on that node.
port=${PORT:-$((20000 + SLURM_JOB_ID % 10000))}
srun --kill-on-bad-exit torchrun \
    --nnodes "$SLURM_NNODES" \
    --nproc-per-node "${SLURM_GPUS_ON_NODE:-8}" \
    --rdzv-id "$SLURM_JOB_ID" --rdzv-backend c10d --rdzv-endpoint "$head_node:$port" \
    -m stages.predict "$@"
