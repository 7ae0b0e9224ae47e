"""Files of a project, each behind those it imports. Knows no Lean."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from treewright.kernel.errors import UsageError
from treewright.lean.project.workspace import Workspace, open_workspace

_IMPORT = re.compile(r"^\s*(?:public\s+)?(?:meta\s+)?import\s+(?:all\s+)?([\w.«»]+)", re.MULTILINE)


def written_imports(text: str) -> tuple[str, ...]:
    """What lines of a text say that it imports; Lean's parser may see less."""
    return tuple(_IMPORT.findall(text))


def by_imports(
    paths: Iterable[Path], workspace: Workspace, imports_of: Callable[[str], Sequence[str]]
) -> list[Path]:
    """As far as that can be: a ring of imports is taken apart somewhere."""
    order: list[Path] = []
    seen: set[Path] = set()
    wanted = list(paths)
    files = {workspace.module_of(path): path for path in wanted}

    def visit(path: Path) -> None:
        if path in seen:
            return
        seen.add(path)
        for needed in imports_of(read_text(path) or ""):
            if needed in files:
                visit(files[needed])
        order.append(path)

    for path in wanted:
        visit(path)
    return order


def by_written_imports(start: Path, paths: Sequence[Path]) -> list[Path]:
    """Where no Lean is asked: files that are in no project, or in one that cannot be read, stay."""
    try:
        workspace = open_workspace(start)
    except UsageError:
        workspace = None
    return list(paths) if workspace is None else by_imports(paths, workspace, written_imports)


def read_text(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
