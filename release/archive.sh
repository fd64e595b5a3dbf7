#!/usr/bin/env bash
# The program as an archive: archive.sh [TARGET]. Binary, manual pages, completions, licences; a SHA-256 beside it.
# shellcheck source=release/common.sh
source "$(dirname "$0")/common.sh"
target="${1:-$(rustc -vV | sed -n 's/^host: //p')}"
cargo build --locked --release --package ruleguider-cli ${1:+--target "$1"}
program="target/${1:+$1/}release/ruleguider"
case "$target" in *windows*) program="$program.exe" ;; esac

name="ruleguider-$version-$target"
folder="$out/$name"
rm -rf "$folder"
mkdir -p "$folder/completions" "$folder/man"
cp "$program" README.md CHANGELOG.md CITATION.cff LICENSE-MIT LICENSE-APACHE "$folder"
"$program" manual --out "$folder/man" > /dev/null
for shell in bash zsh fish powershell; do
    "$program" completions "$shell" > "$folder/completions/ruleguider.$shell"
done
# Names without a path: a tar that is told `D:/…` looks for a machine called D.
cd "$out" || exit
tar -czf "$name.tar.gz" "$name"
rm -rf "$name"
{ sha256sum "$name.tar.gz" 2> /dev/null || shasum -a 256 "$name.tar.gz"; } > "$name.tar.gz.sha256"
cat "$name.tar.gz.sha256"
