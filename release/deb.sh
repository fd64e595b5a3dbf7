#!/usr/bin/env bash
# A Debian package of what archive.sh made for this machine, with completions and manual pages where shells and man find them.
# shellcheck source=release/common.sh
source "$(dirname "$0")/common.sh"
target=$(rustc -vV | sed -n 's/^host: //p')
archive="$out/ruleguider-$version-$target.tar.gz"
[ -f "$archive" ] || { echo "$archive: no such file; run release/archive.sh first" >&2; exit 1; }
architecture=$(dpkg --print-architecture)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tar -C "$work" -xzf "$archive"
from="$work/ruleguider-$version-$target"
root="$work/root"
install -D -m 755 "$from/ruleguider" "$root/usr/bin/ruleguider"
command -v strip > /dev/null && strip "$root/usr/bin/ruleguider"
install -D -m 644 "$from/completions/ruleguider.bash" "$root/usr/share/bash-completion/completions/ruleguider"
install -D -m 644 "$from/completions/ruleguider.zsh" "$root/usr/share/zsh/vendor-completions/_ruleguider"
install -D -m 644 "$from/completions/ruleguider.fish" "$root/usr/share/fish/vendor_completions.d/ruleguider.fish"
for page in "$from"/man/*.1; do
    install -D -m 644 "$page" "$root/usr/share/man/man1/$(basename "$page")"
done
gzip -9n "$root"/usr/share/man/man1/*.1
documents="$root/usr/share/doc/ruleguider"
install -D -m 644 "$from/README.md" "$documents/README.md"
install -D -m 644 "$from/CHANGELOG.md" "$documents/changelog"
gzip -9n "$documents/changelog"
{
    echo "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/"
    printf 'Upstream-Name: RuleGuider\nSource: https://github.com/ruleguider/ruleguider\n\n'
    printf 'Files: *\nCopyright: The RuleGuider maintainers\nLicense: Expat or Apache-2.0\n\nLicense: Expat\n'
    sed 's/^$/./; s/^/ /' "$from/LICENSE-MIT"
    printf '\nLicense: Apache-2.0\n The text is in /usr/share/common-licenses/Apache-2.0.\n'
} > "$documents/copyright"

# The oldest C library that has all that the program calls.
libc=$(grep -aoE 'GLIBC_[0-9]+\.[0-9]+' "$root/usr/bin/ruleguider" | sed 's/GLIBC_//' | sort -Vu | tail -1)
mkdir "$root/DEBIAN"
cat > "$root/DEBIAN/control" << END
Package: ruleguider
Version: $version
Architecture: $architecture
Maintainer: The RuleGuider maintainers
Section: science
Priority: optional
Homepage: https://github.com/ruleguider/ruleguider
Installed-Size: $(du -sk "$root/usr" | cut -f1)
Depends: libc6 (>= $libc), libgcc-s1
Description: link prediction over knowledge graphs, every answer with its reasons
 Queries an incomplete graph with a subject and a relation and ranks the answers,
 each with a probability, the path that leads to it, and how often such paths
 were right. Reads TSV, CSV, Parquet, RDF, KGX and Neo4j's CSV.
END
package="$out/ruleguider_${version}_$architecture.deb"
dpkg-deb --root-owner-group --build "$root" "$package" > /dev/null
dpkg-deb --info "$package" | sed -n 's/^ Depends/depends/p'
dpkg-deb --contents "$package" | awk '{ print $6 }' | grep -c '\.1\.gz$' | sed 's/$/ manual pages/'
