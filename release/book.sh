#!/usr/bin/env bash
# The documentation as a book, and as an archive of it. A warning and a link that leads nowhere are errors.
# shellcheck source=release/common.sh
source "$(dirname "$0")/common.sh"
# Without its server and file watcher, which this needs not.
tool mdbook mdbook@0.5.4 --no-default-features --features search
rm -rf "$out/book"
said=$(mdbook build --dest-dir "$out/book" 2>&1) || { echo "$said" >&2; exit 1; }
if grep -E 'WARN|ERROR' <<< "$said"; then exit 1; fi
release/book_links.py check "$out/book"
cd "$out" || exit
tar -czf "ruleguider-$version-book.tar.gz" book
