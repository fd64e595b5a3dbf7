#!/usr/bin/env bash
# Submits the four jobs, each after the one before it. See README.md.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
# Slurm runs copies of the scripts, which find their settings here.
export HERE="$here" DATA="${DATA:?}" OUT="${OUT:?}" PARTS="${PARTS:-16}"
mkdir -p "$OUT/logs"
submit() { sbatch --parsable --export=ALL --output="$OUT/logs/%x-%A-%a.log" "$@"; }
mine=$(submit --array="1-$PARTS" "$here/mine.sbatch")
run=$(submit --dependency="afterok:$mine" "$here/run.sbatch")
complete=$(submit --array="1-$PARTS" --dependency="afterok:$run" "$here/complete.sbatch")
merge=$(submit --dependency="afterok:$complete" "$here/merge.sbatch")
echo "mine $mine, run $run, complete $complete, merge $merge"
