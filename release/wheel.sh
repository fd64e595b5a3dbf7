#!/usr/bin/env bash
# The wheel and the source distribution, checked as the package index checks them. Zig links against an old libc.
source "$(dirname "$0")/common.sh"
environment
"$venv/bin/pip" install --quiet --disable-pip-version-check 'maturin>=1.9,<2' ziglang twine
export PATH="$venv/bin:$PATH"
rm -rf "$out/wheels"
case "$(uname -s)" in
    Linux) maturin build --locked --manifest-path python/Cargo.toml --zig --compatibility manylinux_2_28 --out "$out/wheels" ;;
    *) maturin build --locked --manifest-path python/Cargo.toml --out "$out/wheels" ;;
esac
maturin sdist --manifest-path python/Cargo.toml --out "$out/wheels"
twine check --strict "$out"/wheels/*
