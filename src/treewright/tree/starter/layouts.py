"""The layouts of other programs that `init` knows, and how it recognises them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path, PurePosixPath

from treewright.kernel.errors import UsageError
from treewright.tree.starter import evolve_tasks, printed_number
from treewright.tree.starter.survey import list_files
from treewright.tree.starter.task import Task

LAYOUTS: dict[str, Callable[[Path, Path], Task]] = {
    "openevolve": evolve_tasks.find_openevolve,
    "shinka": evolve_tasks.find_shinka,
    "autoresearch": printed_number.find_autoresearch,
    "evo": printed_number.find_evo,
}
"""The function that finds the task of a layout in a directory, by the name for `--from`."""
_SIGNS = frozenset({"evaluator.py", "evaluate.py", "program.md"})
"""A directory without one of these files has no task; `.evo` is looked for in the root."""


def recognise(repo: Path) -> list[tuple[str, Path]]:
    """Return the layout and the directory of each task in a repository, the root's first."""
    paths = [PurePosixPath(path) for path in list_files(repo)]
    directories = {str(path.parent) for path in paths if path.name in _SIGNS} | {"."}
    found: list[tuple[str, Path]] = []
    for directory in sorted(directories, key=lambda each: (each != ".", each)):
        for name, find in LAYOUTS.items():
            try:
                find(repo, repo / directory)
            except UsageError:
                continue
            found.append((name, repo / directory))
            break
    return found
