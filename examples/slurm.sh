#!/bin/bash
# Predict as an array of eight independent jobs, one GPU each, then merge.
#
#   sbatch examples/slurm.sh                  # the array
#   sbatch --dependency=afterok:JOBID --array=1 examples/slurm.sh merge
#
# With a shared file system (SHARED=1, the default) the last shard publishes data/predictions and the
# merge is not needed. Without one, each job works on its node's disk and copies its store to $PARTS,
# which the merge reads.
#SBATCH --job-name=twophase
#SBATCH --array=1-8
#SBATCH --gpus=1
#SBATCH --cpus-per-task=8
#SBATCH --time=04:00:00
#SBATCH --requeue
# SIGTERM to what srun started, two minutes before the time is up: finished chunks are kept, and the
# same job, submitted again, resumes.
#SBATCH --signal=TERM@120
set -euo pipefail

SHARDS=8                          # the size of the array; its task ids begin at 1
PARTS=${PARTS:-parts}             # on a file system that the merging job sees
LOCAL=${SLURM_TMPDIR:-/tmp}/twophase

if [[ ${1:-} == merge ]]; then
    exec twophase merge "$PARTS"/*/* --out data/predictions --telemetry data/telemetry.csv
fi

if [[ ${SHARED:-1} == 1 ]]; then
    exec srun twophase predict --shard "$SLURM_ARRAY_TASK_ID/$SHARDS"
fi

# What an earlier try of this job has made is taken along.
mkdir -p "$LOCAL" "$PARTS/$SLURM_ARRAY_TASK_ID"
rsync -a "$PARTS/$SLURM_ARRAY_TASK_ID/" "$LOCAL/.partial/"
status=0
srun twophase predict --shard "$SLURM_ARRAY_TASK_ID/$SHARDS" --predictions "$LOCAL/predictions" \
    --telemetry "$LOCAL/telemetry.csv" || status=$?
rsync -a "$LOCAL/.partial/" "$PARTS/$SLURM_ARRAY_TASK_ID/"
exit "$status"
