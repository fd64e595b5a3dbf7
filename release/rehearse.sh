#!/usr/bin/env bash
# A release without the button: everything that would be published, in target/release-rehearsal, then installed from there
# into empty folders, without anything of this repository, and asked a question.
# shellcheck source=release/common.sh
source "$(dirname "$0")/common.sh"
# timed WHAT COMMAND…: how long each part takes is printed at the end.
times=""
timed() {
    local began=$SECONDS
    "${@:2}"
    times+="$(printf '%4d s  %s' $((SECONDS - began)) "$1")"$'\n'
}
timed "oldest Rust" release/msrv.sh
timed "API" release/semver.sh
timed "archive" release/archive.sh
command -v dpkg-deb > /dev/null && timed "Debian package" release/deb.sh
timed "crates" release/crates.sh
timed "wheel" release/wheel.sh
timed "book" release/book.sh
timed "list of crates" release/sbom.py > "$out/sbom.cdx.json"

empty=$(mktemp -d)
trap 'rm -rf "$empty"' EXIT
# As they would be downloaded.
mkdir "$empty/download"
release/sums.sh | xargs -d '\n' cp -t "$empty/download"
(cd "$empty/download" && sha256sum --check --quiet SHA256SUMS && echo "$(wc -l < SHA256SUMS) files match SHA256SUMS")
rm -r "$empty/download"
# asks PROGRAM: learns a small family by rules alone, and asks about somebody.
asks() (
    mkdir -p "$empty/asked"
    cd "$empty/asked" || exit
    "$1" generate family --people 120 --seed 1 --out family --quiet > /dev/null
    "$1" run family --set system=rules --out run --quiet > /dev/null
    "$1" predict run "$(head -1 family/test.tsv | cut -f1)" "$(head -1 family/test.tsv | cut -f2)" --top 1 > answers.txt || [ $? = 1 ]
    "$1" --version
    rm -rf "$empty/asked"
)

(cd "$out" && tar -xzf ruleguider-"$version"-"$(rustc -vV | sed -n 's/^host: //p')".tar.gz -C "$empty")
asks "$(echo "$empty"/ruleguider-"$version"-*/ruleguider)"

if command -v dpkg-deb > /dev/null; then
    dpkg-deb --extract "$out"/ruleguider_"$version"_*.deb "$empty/debian"
    asks "$empty/debian/usr/bin/ruleguider"
fi

# From the packed crates: those of this version are not in the registry yet, so cargo is shown where they lie.
mkdir "$empty/crates"
for crate in "$out"/crates/*-"$version".crate; do tar -C "$empty/crates" -xzf "$crate"; done
{
    echo "[patch.crates-io]"
    for folder in "$empty"/crates/*; do
        echo "$(basename "$folder" "-$version") = { path = \"$folder\" }"
    done
} > "$empty/patch.toml"
# What both have from the registry is compiled once.
export CARGO_TARGET_DIR="$PWD/target"
from_crates() (
    cd "$empty" || exit
    cargo install --quiet --config "$empty/patch.toml" --path "$empty/crates/ruleguider-cli-$version" --root "$empty/installed"
)
timed "cargo install from the crates" from_crates
asks "$empty/installed/bin/ruleguider"

# From the sources, as the README says: those of the last commit, without what lies beside them here.
mkdir "$empty/source"
git archive HEAD | tar -xf - -C "$empty/source"
from_sources() (
    cd "$empty/source" || exit
    cargo install --locked --quiet --path cli --root "$empty/from-source"
)
timed "cargo install from the sources" from_sources
asks "$empty/from-source/bin/ruleguider"

timed "tests on the wheel" python/test_wheel.sh --tests "$out"/wheels/*.whl
du -sh "$out"/* | sed "s|$out/||"

if [ "$(id -u)" = 0 ] && command -v debootstrap > /dev/null; then
    timed "image" release/image.py target/release/ruleguider
else
    echo "the image is not rehearsed: that needs root and debootstrap"
fi
printf '%s%4d s  in all\n' "$times" "$SECONDS"
