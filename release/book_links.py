#!/usr/bin/env python3
"""Links of the book.

As mdbook's preprocessor (book.toml) it turns links that lead out of docs/ into links to the repository.
`book_links.py check FOLDER` looks at a built book: every page, picture and anchor that it links to must be in it.
"""
import json
import pathlib
import re
import sys
from html.parser import HTMLParser

REPOSITORY = "https://github.com/ruleguider/ruleguider/blob/main/"


def outward(text):
    """The text of a page of docs/ with what is beside docs/ linked in the repository."""
    text = re.sub(r"\]\(\.\./ARCHITECTURE\.md(#[^)]*)?\)", r"](architecture.md\1)", text)
    return re.sub(r"\]\(\.\./([^)]+)\)", rf"]({REPOSITORY}\1)", text)


def rewrite(item):
    chapter = item.get("Chapter") if isinstance(item, dict) else None
    if not chapter:
        return
    chapter["content"] = outward(chapter["content"])
    if chapter["path"] == "architecture.md":
        # It is included from above docs/, and its links start there.
        chapter["content"] = re.sub(r"\]\((?=(results|src|crates|docs)/)", f"]({REPOSITORY}", chapter["content"])
    for inner in chapter["sub_items"]:
        rewrite(inner)


class Page(HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.links, self.anchors = [], {""}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id":
                self.anchors.add(value)
            elif name in ("href", "src") and value and not re.match(r"[a-z]+:|//", value):
                self.links.append(value)


def broken(folder):
    pages = {path.resolve(): Page(path) for path in sorted(folder.rglob("*.html"))}
    for path, page in pages.items():
        for link in page.links:
            name, _, anchor = link.partition("#")
            target = (path.parent / name).resolve() if name else path
            if not target.exists() or (target in pages and anchor not in pages[target].anchors):
                yield f"{path.name}: {link}"


def main(arguments):
    if arguments[:1] == ["supports"]:
        return 0
    if arguments[:1] == ["check"]:
        folder = pathlib.Path(arguments[1])
        found = sorted(set(broken(folder)))
        print("\n".join(found) or f"book: {len(list(folder.rglob('*.html')))} pages, every link leads somewhere")
        return 1 if found else 0
    _, book = json.load(sys.stdin)
    for item in book.get("items", book.get("sections", [])):
        rewrite(item)
    json.dump(book, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
