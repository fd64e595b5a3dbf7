# shellcheck shell=bash
# What the scripts of a release share: the version, the folder for results, tools that are installed once.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export version
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
out="${OUT:-$PWD/target/release-rehearsal}"
mkdir -p "$out"
export PATH="$PWD/target/tools/bin:$PATH"

# tool PROGRAM CRATE: a program that crates.io has, built once into target/tools. It runs for moments, so it is optimised little.
tool() {
    command -v "$1" > /dev/null || CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_OPT_LEVEL=1 \
        cargo install --locked --quiet --root target/tools "$2"
}

# environment: an empty Python environment in $venv.
environment() {
    venv="$out/.venv"
    [ -x "$venv/bin/pip" ] || "${PYTHON:-python3}" -m venv "$venv"
}
