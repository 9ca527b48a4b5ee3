#!/bin/bash
# Predict as an array of independent jobs, one GPU each.
#
#   sbatch examples/slurm.sh                                       # eight of them
#   sbatch --array=1-64 --export=ALL,SHARDS=64 examples/slurm.sh   # or as many as you like
#   sbatch --array=3 examples/slurm.sh                             # one of the eight again
#
# With a shared file system (SHARED=1, the default) the last shard publishes data/predictions.
# Without one, each job works on its node's disk and copies what it has made to $PARTS; a job after
# the array merges the parts:
#
#   job=$(sbatch --parsable --export=ALL,SHARED=0 examples/slurm.sh)
#   sbatch --dependency=afterok:$job --array=1 --gpus=0 examples/slurm.sh merge
#
# Further arguments go to predict, such as -S predict.dtype=bfloat16.
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

SHARDS=${SHARDS:-8}               # the size of the whole array; its task ids begin at 1
PARTS=${PARTS:-parts}             # on a file system that the merging job sees
LOCAL=${SLURM_TMPDIR:-/tmp}/twophase

if [[ ${1:-} == merge ]]; then
    exec twophase merge "$PARTS"/*/* --out data/predictions --telemetry data/telemetry.csv
fi

shard=$SLURM_ARRAY_TASK_ID/$SHARDS
if [[ ${SHARED:-1} == 1 ]]; then
    exec srun twophase predict --shard "$shard" "$@"
fi

# What an earlier try of this job has made is taken along.
mkdir -p "$LOCAL" "$PARTS/$SLURM_ARRAY_TASK_ID"
rsync -a "$PARTS/$SLURM_ARRAY_TASK_ID/" "$LOCAL/.partial/"
status=0
srun twophase predict --shard "$shard" --predictions "$LOCAL/predictions" \
    --telemetry "$LOCAL/telemetry.csv" "$@" || status=$?
rsync -a "$LOCAL/.partial/" "$PARTS/$SLURM_ARRAY_TASK_ID/"
exit "$status"
