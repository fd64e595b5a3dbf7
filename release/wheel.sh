#!/usr/bin/env bash
# The wheel and the source distribution, checked as the package index checks them. Zig links against an old libc.
# shellcheck source=release/common.sh
source "$(dirname "$0")/common.sh"
environment || { echo "there is no Python with venv to build the wheel with" >&2; exit 1; }
"$bin/pip" install --quiet --disable-pip-version-check maturin==1.16.0 ziglang==0.17.0 twine==7.0.0
export PATH="$bin:$PATH"
rm -rf "$out/wheels"
maturin sdist --manifest-path python/Cargo.toml --out "$out/wheels"
# The wheel is built from the source distribution, so that one which lacks something is found here.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
archive=$(basename "$out"/wheels/*.tar.gz)
(cd "$out/wheels" && tar -tzf "$archive") > "$work/files"
if grep -E '^[^/]*/(results|benches|docs|runs)/' "$work/files"; then
    echo "$archive holds files that do not belong in it" >&2
    exit 1
fi
grep -q '^[^/]*/LICENSE-APACHE$' "$work/files" || { echo "$archive has no LICENSE-APACHE" >&2; exit 1; }
(cd "$out/wheels" && tar -xzf "$archive" -C "$(cd "$work" && pwd)")
export CARGO_TARGET_DIR="$PWD/target"
cd "$work"/ruleguider-*
case "$(uname -s)" in
    Linux) maturin build --locked --zig --compatibility manylinux_2_28 --out "$out/wheels" ;;
    *) maturin build --locked --out "$out/wheels" ;;
esac
twine check --strict "$out"/wheels/*
