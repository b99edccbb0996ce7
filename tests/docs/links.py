#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Fails if the target of a relative link or an anchor does not exist, in *.md, docs/**/*.md and examples/*.md.

    python3 tests/docs/links.py ROOT

Also fails for a link to a file that docs/build.sh does not put on the site, for a README.md of more than 150 lines or
with prose of more than 120 characters a line, and for a page of docs/results or docs/notes that the README.md of its
folder does not link to. Links to other sites are not followed. Anchors are those that GitHub makes of headings.
"""
import pathlib
import re
import sys

LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*$")


def prose(text):
    """The lines of a page with their numbers; code blocks and code spans are blank."""
    fence = None
    after_text = False
    for number, line in enumerate(text.splitlines(), 1):
        mark = re.match(r"\s*(```+|~~~+)", line)
        if mark and (fence is None or line.strip().startswith(fence)):
            fence = mark.group(1) if fence is None else None
            line = ""
        elif fence is not None or (line.startswith("    ") and not after_text):
            line = ""
        after_text = bool(line.strip())
        yield number, line


def slug(heading):
    """GitHub's anchor of a heading: without links and code marks, in lower case, words joined by hyphens."""
    heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def anchors(page):
    found = set()
    counts = {}
    for _, line in prose(page.read_text(encoding="utf-8")):
        match = HEADING.match(line)
        if match:
            base = slug(match.group(2))
            again = counts.get(base, 0)
            counts[base] = again + 1
            found.add(f"{base}-{again}" if again else base)
    return found


def links(page):
    """(line number, target) of every link; the text of a link may continue on the next line."""
    text = "\n".join(line for _, line in prose(page.read_text(encoding="utf-8")))
    text = re.sub(r"`[^`\n]*`", lambda span: " " * len(span.group()), text)
    for match in LINK.finditer(text):
        yield text.count("\n", 0, match.start(1)) + 1, match.group(1)


def problems(root):
    root = root.resolve()
    pages = sorted([*root.glob("*.md"), *root.glob("docs/**/*.md"), *root.glob("examples/*.md")])
    site = [root / "docs", root / "examples"]
    if not pages:
        yield f"{root}: no pages"
    targets = {page: set() for page in pages}
    for page in pages:
        name = page.relative_to(root)
        for number, link in links(page):
            if re.match(r"[a-z][a-z0-9+.-]*:", link):
                continue
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            targets[page].add(target)
            if not target.exists():
                yield f"{name}:{number}: {link}: no such file"
            elif not target.is_relative_to(root):
                yield f"{name}:{number}: {link}: outside the tree"
            elif target.parent != root and not any(target.is_relative_to(folder) for folder in site):
                yield f"{name}:{number}: {link}: not on the site, which has docs/, examples/ and the files of the root"
            elif anchor and (target.suffix != ".md" or anchor not in anchors(target)):
                yield f"{name}:{number}: {link}: no such heading"
    for page in pages:
        index = page.parent / "README.md"
        if page.parent.name in ("results", "notes") and page != index and page not in targets.get(index, ()):
            yield f"{page.relative_to(root)}: {index.relative_to(root)} has no link to this page"


def long_readme(root):
    page = root / "README.md"
    if page.exists():
        lines = list(prose(page.read_text(encoding="utf-8")))
        if len(lines) > 150:
            yield f"README.md: {len(lines)} lines, more than 150: move details to docs/"
        for number, line in lines:
            if len(line) > 120 and not line.startswith("|"):
                yield f"README.md:{number}: {len(line)} characters, more than 120"


def main():
    root = pathlib.Path(sys.argv[1])
    found = [*problems(root), *long_readme(root)]
    print("\n".join(found) or "all links lead somewhere")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
