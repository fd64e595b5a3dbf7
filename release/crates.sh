#!/usr/bin/env bash
# Every crate as it would be published, compiled from its package; `crates.sh --no-verify` packs without compiling.
# shellcheck source=release/common.sh
source "$(dirname "$0")/common.sh"
# One folder for what is compiled, so that dependencies are not built again for every crate.
CARGO_TARGET_DIR="$PWD/target" cargo package --locked --workspace --exclude ruleguider-python --allow-dirty "$@"
rm -rf "$out/crates"
mkdir -p "$out/crates"
cp target/package/*-"$version".crate "$out/crates"

# No graphs, no results, and nothing that a registry would refuse; licences and a README in each.
for crate in "$out"/crates/*-"$version".crate; do
    files=$(cd "$out/crates" && tar -tzf "$(basename "$crate")")
    if grep -E '/(results|data|runs|target|benches)/|\.(png|rg|parquet)$' <<< "$files"; then
        echo "$crate holds files that do not belong in it" >&2
        exit 1
    fi
    for needed in LICENSE-MIT LICENSE-APACHE README.md; do
        grep -q "^[^/]*/$needed\$" <<< "$files" || { echo "$crate has no $needed" >&2; exit 1; }
    done
    size=$(wc -c < "$crate")
    [ "$size" -lt 10485760 ] || { echo "$crate has $size bytes; the registry takes 10 MiB" >&2; exit 1; }
    echo "$(basename "$crate"): $((size / 1024)) KiB"
done
