# shellcheck shell=bash disable=SC2034
# What the jobs share. DATA, OUT and PARTS come from whoever submits.
set -euo pipefail
: "${DATA:?the data, as ruleguider reads it}" "${OUT:?a folder that all nodes see}" "${PARTS:?how many parts}"
SAMPLES="${SAMPLES:-100000}"
SETTINGS="${SETTINGS:-system=rules}"
TYPES="${TYPES:-cyclic}"
# As many threads as the task has processors.
THREADS="${SLURM_CPUS_PER_TASK:-1}"
mkdir -p "$OUT/parts"
part() { printf '%s/parts/%s-%s-of-%s.shard.zst' "$OUT" "$1" "$2" "$PARTS"; }
parts() { for i in $(seq "$PARTS"); do part "$1" "$i"; echo; done; }
