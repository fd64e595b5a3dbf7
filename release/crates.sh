#!/usr/bin/env bash
# Every crate as it would be published, compiled from its package; `crates.sh --no-verify` packs without compiling.
source "$(dirname "$0")/common.sh"
cargo package --locked --workspace --exclude ruleguider-python --allow-dirty "$@"
mkdir -p "$out/crates"
cp target/package/*-"$version".crate "$out/crates"

# No graphs, no results, and nothing that a registry would refuse.
for crate in "$out"/crates/*-"$version".crate; do
    if tar -tzf "$crate" | grep -E '/(results|data|runs|target)/|\.(png|rg|parquet)$'; then
        echo "$crate holds files that do not belong in it" >&2
        exit 1
    fi
    size=$(wc -c < "$crate")
    [ "$size" -lt 10485760 ] || { echo "$crate has $size bytes; the registry takes 10 MiB" >&2; exit 1; }
    echo "$(basename "$crate"): $((size / 1024)) KiB"
done
