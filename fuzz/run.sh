#!/bin/sh
# Fuzzes every target, or those that are named: fuzz/run.sh [TARGET...]
#   FUZZ_SECONDS=60   how long each is fuzzed
#   FUZZ_RUNS=N       so many executions of each instead
#   FUZZ_KEEP=1       afterwards takes into fuzz/corpus what covers more than the corpus did
# Needs Rust (stable will do) and a C++ compiler. What it finds lies in fuzz/artifacts/TARGET, what covers more in fuzz/found/TARGET.
set -eu
cd "$(dirname "$0")"
host=$(rustc -vV | sed -n 's/^host: //p')
# What cargo-fuzz passes to the compiler, less the sanitizers, which only a nightly compiler has. Build scripts are left alone
# because a target is named.
coverage="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters"
coverage="$coverage -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares"
RUSTFLAGS="--cfg fuzzing -Cdebug-assertions $coverage" cargo build --quiet --release --target "$host"
built=${CARGO_TARGET_DIR:-target}/$host/release
# Targets read files: in memory, where there is such a place.
place=$(mktemp -d -p "$([ -d /dev/shm ] && echo /dev/shm || echo /tmp)")
trap 'rm -rf "$place"' EXIT
export TMPDIR="$place"
if [ -n "${FUZZ_RUNS:-}" ]; then limit="-runs=$FUZZ_RUNS"; else limit="-max_total_time=${FUZZ_SECONDS:-60}"; fi
# shellcheck disable=SC2046 # names of targets have no spaces
[ $# -gt 0 ] || set -- $(sed -n 's/^name = "\(.*\)"$/\1/p' Cargo.toml | grep -v ruleguider)
for target in "$@"; do
    mkdir -p "found/$target" "artifacts/$target"
    # Whatever a target prints goes the same way as the findings; the last lines are the figures.
    if ! "$built/$target" "found/$target" "corpus/$target" "$limit" -max_len=2048 -timeout=20 -rss_limit_mb=2048 \
        -print_final_stats=1 "-artifact_prefix=artifacts/$target/" >"$place/log" 2>&1; then
        tail -n 40 "$place/log"
        echo "$target: a finding, see above and fuzz/artifacts/$target"
        exit 1
    fi
    executed=$(sed -n 's/^stat::number_of_executed_units: *//p' "$place/log")
    covered=$(sed -n 's/^#.* cov: \([0-9]*\) .*/\1/p' "$place/log" | tail -n 1)
    echo "$target: $executed executions, $covered places covered"
    if [ -n "${FUZZ_KEEP:-}" ]; then
        "$built/$target" -merge=1 "corpus/$target" "found/$target" >"$place/log" 2>&1 || tail -n 20 "$place/log"
    fi
done
