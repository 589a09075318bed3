#!/usr/bin/env python3
"""The preprocessor of the book (`book.toml`): gets the pages of docs/SUMMARY.md from mdBook, and returns them changed.

Pages outside of docs/, such as the architecture, get a place in the book. Decisions become pages below their list. Links
between pages are relative to the files, so they are rewritten to the target's place in the book. A link to a file that
is not in the book becomes plain text.
"""

import json
import pathlib
import posixpath
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
DECISIONS = "decisions/README.md"
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")


def book_path(source):
    """The place of a page in the book; `source` is relative to docs/. mdBook calls the first page of a folder `index`."""
    return re.sub(r"(^|/)README\.md$", r"\1index.md", re.sub(r"^(\.\./)+", "", source))


def rewritten_link(link, source, pages):
    """The link rewritten for the page at `source` in the book, or nothing if the target is not in the book."""
    target, mark, anchor = link.partition("#")
    if "://" in target or target.startswith("mailto:") or not target:
        return link
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target)).removeprefix("../docs/")
    # mdBook copies the other files of docs/, such as pictures.
    is_copied = not path.startswith("..") and not path.endswith(".md") and (DOCS / path).is_file()
    if path not in pages and not is_copied:
        return None
    return posixpath.relpath(book_path(path), posixpath.dirname(book_path(source)) or ".") + mark + anchor


def with_links(text, source, pages):
    """The text with rewritten links, except in fenced blocks."""

    def replaced(found):
        link = rewritten_link(found[3], source, pages)
        return found[2] if link is None else f"{found[1]}[{found[2]}]({link})"

    parts = re.split(r"(^```.*?^```)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.startswith("```") else LINK.sub(replaced, part) for part in parts)


def chapters(items):
    for item in items:
        if isinstance(item, dict) and "Chapter" in item:
            yield item["Chapter"]
            yield from chapters(item["Chapter"]["sub_items"])


def decision(file, parents):
    text = file.read_text()
    path = f"decisions/{file.name}"
    title = text.partition("\n")[0].removeprefix("# ")
    page = {"name": title, "content": text, "number": None, "sub_items": []}
    return {"Chapter": {**page, "path": path, "source_path": path, "parent_names": parents}}


def prepared(book):
    # The name of the list depends on the version of mdBook.
    items = book["items"] if "items" in book else book["sections"]
    for chapter in chapters(items):
        if chapter["source_path"] == DECISIONS:
            parents = [*chapter["parent_names"], chapter["name"]]
            chapter["sub_items"] = [decision(file, parents) for file in sorted((DOCS / "decisions").glob("[0-9]*.md"))]
    pages = {chapter["source_path"] for chapter in chapters(items)}
    for chapter in chapters(items):
        chapter["path"] = book_path(chapter["source_path"])
        chapter["content"] = with_links(chapter["content"], chapter["source_path"], pages)
    return book


if __name__ == "__main__":
    if sys.argv[1:2] == ["supports"]:
        sys.exit(0)
    _, sent = json.load(sys.stdin)
    json.dump(prepared(sent), sys.stdout)
