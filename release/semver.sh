#!/usr/bin/env bash
# Whether the version says what changed in the API: compares each crate with the newest tag before this version.
# shellcheck source=release/common.sh
source "$(dirname "$0")/common.sh"
base=$(git tag --list 'v*' --sort=-version:refname | grep -vx "v$version" | head -1 || true)
if [ -z "$base" ]; then
    echo "there is no tag of an earlier version to compare $version with"
    exit 0
fi
tool cargo-semver-checks cargo-semver-checks@0.51.0
for crate in ruleguider ruleguider-graph ruleguider-rule ruleguider-support ruleguider-tensor; do
    # A crate that the earlier version did not have has nothing to be compared with.
    manifest=$(cargo metadata --no-deps --format-version 1 | python3 -c '
import json, os, sys
print(next(os.path.relpath(one["manifest_path"]) for one in json.load(sys.stdin)["packages"] if one["name"] == sys.argv[1]))
' "$crate")
    if git cat-file -e "$base:$manifest" 2> /dev/null; then
        cargo semver-checks --package "$crate" --baseline-rev "$base"
    else
        echo "$crate is new since $base"
    fi
done
