#!/usr/bin/env python3
"""Links of the book.

As mdbook's preprocessor (book.toml) it turns links that lead out of docs/ into links to the repository.
`book_links.py check FOLDER` looks at a built book: every page, picture and anchor that it links to must be in it, and
every file of the repository in this tree.
"""
import json
import pathlib
import posixpath
import re
import sys
import urllib.parse
from html.parser import HTMLParser

ROOT = pathlib.Path(__file__).resolve().parent.parent
REPOSITORY = "https://github.com/ruleguider/ruleguider/blob/main/"
# A page of docs/ that includes a file from elsewhere: its links start where that file is.
INCLUDED = {"architecture.md": "ARCHITECTURE.md"}
PAGES = {source: page for page, source in INCLUDED.items()}
# Code is matched, too, so that brackets in it are no links.
CODE_OR_LINK = re.compile(r"```.*?```|`[^`]*`|\]\((?![a-z]+:|#)([^)#]+)", re.DOTALL)


def outward(text, page):
    """The text of `page`, a path within docs/, with what is outside docs/ linked in the repository."""
    source = INCLUDED.get(page, f"docs/{page}")

    def moved(match):
        if match[1] is None:
            return match[0]
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), match[1]))
        inside = PAGES.get(target) or (target.removeprefix("docs/") if target.startswith("docs/") else None)
        if inside is None:
            return f"]({REPOSITORY}{target}"
        return f"]({posixpath.relpath(inside, posixpath.dirname(page) or '.')}"

    return CODE_OR_LINK.sub(moved, text)


def rewrite(item):
    chapter = item.get("Chapter") if isinstance(item, dict) else None
    if not chapter:
        return
    chapter["content"] = outward(chapter["content"], chapter["path"])
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
            elif name in ("href", "src") and value:
                self.links.append(value)


def leads_somewhere(link, path, pages):
    """Whether a link on the page at `path` does; those to other sites are not followed."""
    if link.startswith(REPOSITORY):
        name = link.removeprefix(REPOSITORY).partition("#")[0]
        return (ROOT / urllib.parse.unquote(name)).exists()
    if re.match(r"[a-z]+:|//", link):
        return True
    name, _, anchor = link.partition("#")
    target = (path.parent / name).resolve() if name else path
    return target.exists() and (target not in pages or anchor in pages[target].anchors)


def broken(folder):
    pages = {path.resolve(): Page(path) for path in sorted(folder.rglob("*.html"))}
    for path, page in pages.items():
        for link in page.links:
            if not leads_somewhere(link, path, pages):
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
