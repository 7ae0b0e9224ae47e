"""Hooks of mkdocs: make the navigation from docs/index.md, and add pages of the repository's root.

Links and anchors lead to the same pages on the site as in the repository.
"""

from __future__ import annotations

import os
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
# Files outside docs/ that pages link to. The site has them below REPOSITORY.
FROM_THE_ROOT = (
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "LICENSE",
    "action.yml",
    "examples/programs.py",
    *(path.relative_to(ROOT).as_posix() for path in sorted(ROOT.glob("schema/*.json"))),
)
REPOSITORY = "repository"

_LINK = re.compile(r"(?P<before>\]\()(?P<target>[^)\s#]+)(?P<after>(?:#[^)\s]*)?\))")


def anchor(heading: str, separator: str) -> str:
    """Return the fragment of a heading, as the usual hosts of Markdown make it."""
    return re.sub(r"\s", separator, re.sub(r"[^\w\s-]", "", heading.lower()))


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    config.mdx_configs["toc"] = {"slugify": anchor, "permalink": False}
    config.nav = navigation((ROOT / "docs" / "index.md").read_text(encoding="utf-8"))
    return config


def navigation(index: str) -> list[dict[str, Any]]:
    """Return the sections of the index with the pages that each links to."""
    first, *parts = re.split(r"^## ", index, flags=re.M)
    sections: list[dict[str, Any]] = [{"Home": "index.md"}, *linked_pages(first)]
    for part in parts:
        title = part.partition("\n")[0].strip()
        sections.append({title: linked_pages(part)})
    return sections


def linked_pages(text: str) -> list[dict[str, Any]]:
    links = re.findall(r"\[([^\]]+)\]\(([^)\s#]+\.md)\)", text)
    return [{" ".join(name.split()): site_path(f"docs/{target}")} for name, target in links]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for name in FROM_THE_ROOT:
        source = str(ROOT / name)
        files.append(File.generated(config, site_path(name), abs_src_path=source))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Rewrite links of the repository for the site, where its root is a directory of the pages."""
    here = page.file.src_uri
    source = repository_path(here)

    def moved(link: re.Match[str]) -> str:
        target = link["target"]
        if re.match(r"[a-z]+:", target):
            return link[0]
        wanted = site_path(posixpath.join(posixpath.dirname(source), target))
        relative = os.path.relpath(wanted, posixpath.dirname(here) or ".")
        return f"{link['before']}{relative}{link['after']}"

    return _LINK.sub(moved, markdown)


def site_path(path: str) -> str:
    """Return the path on the site of a file of the repository."""
    path = posixpath.normpath(path)
    return path.removeprefix("docs/") if path.startswith("docs/") else f"{REPOSITORY}/{path}"


def repository_path(path: str) -> str:
    return (
        path.removeprefix(f"{REPOSITORY}/") if path.startswith(f"{REPOSITORY}/") else f"docs/{path}"
    )
