#!/usr/bin/env bash
# The oldest Rust that Cargo.toml promises: no dependency needs a newer one, and with `--build` it compiles everything.
# That our own code calls nothing newer is clippy's `incompatible_msrv`, which reads `rust-version` in every check.
# shellcheck source=release/common.sh
source "$(dirname "$0")/common.sh"
oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
cargo metadata --locked --format-version 1 | python3 -c '
import json, sys
number = lambda version: tuple(int(part) for part in version.split("."))[:3]
oldest = number(sys.argv[1])
newer = [
    "{name} {version} needs Rust {rust_version}".format_map(package)
    for package in json.load(sys.stdin)["packages"]
    if package["rust_version"] and number(package["rust_version"])[:2] > oldest[:2]
]
sys.exit("\n".join(newer) or 0)
' "$oldest"
echo "no dependency needs a newer Rust than $oldest"
if [ "${1:-}" = --build ]; then
    rustup toolchain install "$oldest" --profile minimal
    cargo "+$oldest" check --locked --workspace --exclude ruleguider-python
fi
