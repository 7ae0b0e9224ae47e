"""The documentation site: built strictly, every page reachable, no resource loaded from
elsewhere."""

from __future__ import annotations

import posixpath
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("site")
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site")
    built = build(ROOT / "mkdocs.yml", place)
    assert built.returncode == 0, built.stderr
    return place


def build(config: Path, place: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", config, "-d", place]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def links(page: Path) -> list[str]:
    return re.findall(r'(?:href|src)="([^"]+)"', page.read_text(encoding="utf-8"))


def test_every_page_can_be_reached_from_the_first(site: Path) -> None:
    seen, waiting = {"index.html"}, ["index.html"]
    while waiting:
        here = waiting.pop()
        for link in links(site / here):
            target = link.partition("#")[0]
            if not target or re.match(r"[a-z]+:", target):
                continue
            wanted = posixpath.normpath(posixpath.join(posixpath.dirname(here), target))
            assert (site / wanted).exists(), f"{here}: {link}"
            if wanted.endswith(".html") and wanted not in seen:
                seen.add(wanted)
                waiting.append(wanted)
    sources = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")]
    assert len(sources) > 50
    assert {path.with_suffix(".html").as_posix() for path in sources} <= seen
    assert {"repository/index.html", "repository/ARCHITECTURE.html"} <= seen


def test_a_page_loads_no_external_resource(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r'<(?:script|link|img)[^>]+(?:href|src)="(\w+:[^"]*)"', text)
        assert [one for one in loaded if not one.startswith("data:")] == [], page.name


def test_a_broken_link_or_an_unlinked_page_fails_the_build(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for name in ("mkdocs.yml", "docs/site_hooks.py"):
        (tmp_path / name).write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    names = ("README", "ARCHITECTURE", "CONTRIBUTING", "CHANGELOG")
    for name in names:
        (tmp_path / f"{name}.md").write_text(f"# {name}\n", encoding="utf-8")
    for name in ("LICENSE", "action.yml", "examples/programs.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("", encoding="utf-8")
    (tmp_path / "docs" / "index.md").write_text(
        "".join(f"[{name}](../{name}.md)\n" for name in names)
        + "[gone](gone.md) [no](index.md#nowhere)\n",
        encoding="utf-8",
    )
    (tmp_path / "docs" / "alone.md").write_text("# Alone\n", encoding="utf-8")
    built = build(tmp_path / "mkdocs.yml", tmp_path / "site")
    assert built.returncode != 0
    for word in ("gone.md", "#nowhere", "alone.md"):
        assert word in built.stderr
