#!/bin/bash
# Predict on all GPUs of several nodes that share a file system; rank 0 publishes.
#
#   sbatch examples/torchrun.sh
#
# On one machine without SLURM:  torchrun --nproc-per-node 8 -m stages.predict
#SBATCH --job-name=twophase
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=32
#SBATCH --time=04:00:00
set -euo pipefail

# The first of them, without a pipe that would be cut short.
read -r head_node < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
srun --kill-on-bad-exit torchrun \
    --nnodes "$SLURM_NNODES" \
    --nproc-per-node "${SLURM_GPUS_ON_NODE:-8}" \
    --rdzv-id "$SLURM_JOB_ID" --rdzv-backend c10d --rdzv-endpoint "$head_node:29500" \
    -m stages.predict
