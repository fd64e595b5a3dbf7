#!/usr/bin/env bash
# Prints the files of a release, and writes the last of them, SHA256SUMS: the checksums of all others by their names alone,
# as they lie in one folder after a download.
# shellcheck source=release/common.sh
source "$(dirname "$0")/common.sh"
shopt -s nullglob
files=("$out"/*.tar.gz "$out"/*.tar.gz.sha256 "$out"/*.deb "$out"/wheels/* "$out"/crates/* "$out"/sbom.cdx.json)
twice=$(printf '%s\n' "${files[@]##*/}" | sort | uniq -d)
[ -z "$twice" ] || { echo "two files have one name: $twice" >&2; exit 1; }
for file in "${files[@]}"; do
    (cd "$(dirname "$file")" && sha256sum "$(basename "$file")")
done > "$out/SHA256SUMS"
printf '%s\n' "${files[@]}" "$out/SHA256SUMS"
