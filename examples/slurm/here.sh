#!/usr/bin/env bash
# The same tasks in turn, on this machine and without Slurm. See README.md.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
export HERE="$here" DATA="${DATA:?}" OUT="${OUT:?}" PARTS="${PARTS:-4}"
for i in $(seq "$PARTS"); do SLURM_ARRAY_TASK_ID="$i" bash "$here/mine.sbatch"; done
bash "$here/run.sbatch"
for i in $(seq "$PARTS"); do SLURM_ARRAY_TASK_ID="$i" bash "$here/complete.sbatch"; done
bash "$here/merge.sbatch"
