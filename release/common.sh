# shellcheck shell=bash
# What the scripts of a release share: the version, the folder for results, tools that are installed once.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
export version
# Git's shell on Windows takes `D:\…` for a host where a program splits at colons, so the path is the shell's own.
out="${OUT:-target/release-rehearsal}"
mkdir -p "$out"
out=$(cd "$out" && pwd)
export OUT="$out"
export PATH="$PWD/target/tools/bin:$PATH"

# tool PROGRAM CRATE@VERSION [OPTION…]: a program that crates.io has, built once into target/tools. It runs for moments, so it is
# optimised little.
tool() {
    command -v "$1" > /dev/null || CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_OPT_LEVEL=0 \
        cargo install --locked --quiet --root target/tools "${@:2}"
}

# environment: an empty Python environment, whose programs are in $bin; fails where Python or its venv is missing.
environment() {
    local venv="$PWD/target/tools/python"
    # One that was begun without pip is no use.
    if ! [ -e "$venv/bin/pip" ] && ! [ -e "$venv/Scripts/pip.exe" ]; then
        rm -rf "$venv"
        "${PYTHON:-python3}" -m venv "$venv" > /dev/null 2>&1 || return 1
    fi
    bin="$venv/bin"
    [ -d "$bin" ] || bin="$venv/Scripts"
    export bin
}
