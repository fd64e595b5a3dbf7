#!/usr/bin/env bash
# The documentation as a book. A warning is an error; tests check links and that every page is in it (`cargo test book`).
source "$(dirname "$0")/common.sh"
tool mdbook mdbook
said=$(mdbook build --dest-dir "$out/book" 2>&1) || { echo "$said" >&2; exit 1; }
if grep -E 'WARN|ERROR' <<< "$said"; then exit 1; fi
echo "book: $(find "$out/book" -name '*.html' | wc -l) pages"
