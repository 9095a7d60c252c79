"""Hooks of the site: pages from outside of docs/, and links that lead where the site has them. Run by mkdocs.

README.md is the site's home. Files elsewhere in the repository that pages link to come along; folders are named, not
linked.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parent.parent
HOMES = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changes.md"}
LINK = re.compile(r"(?P<image>!?)\[(?P<words>[^\]]*)\]\((?P<target>[^)\s#]+)(?P<anchor>#[^)]*)?\)")

FENCE = re.compile(r"^(```\w+) .+$", re.MULTILINE)  # what refresh_docs.py reads behind the language


def place(path: str) -> str:
    """Where the site has a file of the repository.

    >>> place("README.md"), place("docs/chips.md"), place("examples/bert-serve.yaml")
    ('index.md', 'chips.md', 'examples/bert-serve.yaml')
    """
    return HOMES.get(path) or path.removeprefix("docs/")


def origin(uri: str) -> str:
    """The file of the repository behind a page of the site."""
    homes = {home: path for path, home in HOMES.items()}
    return homes.get(uri) or (f"docs/{uri}" if (ROOT / "docs" / uri).exists() else uri)


def resolve(page: str, target: str) -> str | None:
    """What a link of a page leads to in the repository; None for addresses and for nothing."""
    if re.match(r"[a-z]+:|/", target):
        return None
    path = posixpath.normpath(str(PurePosixPath(page).parent / target))
    return path if (ROOT / path).exists() else None


def linked(pages: list[str]) -> set[str]:
    """Files outside of docs/ that these pages lead to, and the pages among those in turn."""
    found: set[str] = set()
    while pages:
        page = pages.pop()
        for link in LINK.finditer((ROOT / page).read_text(encoding="utf-8")):
            path = resolve(page, link["target"])
            if path and path not in found and not path.startswith("docs/") and (ROOT / path).is_file():
                found.add(path)
                pages += [path] if path.endswith(".md") else []
    return found


def on_files(files: Any, config: Any) -> Any:
    """Bring along what lies outside of docs/."""
    pages = [*HOMES, *(origin(file.src_uri) for file in files.documentation_pages())]
    for path in sorted({*HOMES, *linked(pages)}):
        files.append(File.generated(config, place(path), abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Links as the site has them."""
    here = origin(page.file.src_uri)

    def moved(link: re.Match[str]) -> str:
        path = resolve(here, link["target"])
        if path is None:
            return link[0]
        if (ROOT / path).is_dir():
            return link["words"]
        target = posixpath.relpath(place(path), posixpath.dirname(page.file.src_uri) or ".")
        return f"{link['image']}[{link['words']}]({target}{link['anchor'] or ''})"

    return FENCE.sub(r"\1", LINK.sub(moved, markdown))
