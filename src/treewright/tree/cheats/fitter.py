"""Patches of cheats for a repository: facts about its sweep, and a file that the sweep runs.

A cheat without a patch gets the verdict "not fitted" with the reason, and never counts as stopped.
"""

from __future__ import annotations

import contextlib
import csv
import io
import math
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from treewright.kernel.errors import TreewrightError
from treewright.kernel.storage import untrusted
from treewright.tree.cheats.corpus import (
    Cheat,
    Language,
    inserted,
    language_of,
    new_module,
    payload,
)
from treewright.tree.config import Config, MetricConfig
from treewright.tree.evaluating.perturbation import perturb
from treewright.tree.guard.protected_files import match_protected
from treewright.tree.repository.git import git

Table = dict[str, dict[str, float]]
"""Config id -> metric -> value."""


_MARKS = ".ran-by-the-sweep"
_NO_PLACE = "the sweep runs no Python or shell file that a candidate may change"
_MOST_FILES = 5000


@dataclass(frozen=True, slots=True)
class Places:
    """Where cheats leave traces, all below the temporary directory."""

    trial: Path
    outside: Path
    artifacts: Path
    branch: Path
    commit: str
    port: int
    token: str


def parse_rows(data: bytes, config: Config, limit: int | None) -> Table:
    """Return the rows of the root's results.

    Raises:
        TreewrightError: the results have no usable row.
    """
    found: Table = {}
    for row in csv.DictReader(io.StringIO(data.decode("utf-8-sig", "replace"))):
        name = (row.get("config_id") or "").strip()
        if name.isdecimal() and (limit is None or int(name) < limit):
            found[name] = {m.name: float(row[m.name]) for m in config.metrics}
    if not found:
        raise TreewrightError("the sweep of the root commit gives no row to start from")
    return found


def shifted(table: Table, config: Config, how: int) -> Table:
    """Return the rows with better (`how` = 1) or worse (-1) ranked metrics, within bounds."""
    return {
        name: {m.name: _shifted(m, row[m.name], place, how) for m in config.metrics}
        for place, (name, row) in enumerate(table.items())
    }


def _shifted(metric: MetricConfig, value: float, place: int, how: int) -> float:
    if metric.constraint:
        return value
    sign = how if metric.direction == "maximize" else -how
    moved = value + sign * (0.4 * abs(value) + 0.25 + 0.001 * (place % 3))
    low = -math.inf if metric.min is None else metric.min
    high = math.inf if metric.max is None else metric.max
    return min(max(moved, low), high)


def collect_facts(
    table: Table, config: Config, limit: int | None, places: Places, scripts: list[str]
) -> dict[str, Any]:
    better, primary = shifted(table, config, 1), config.primary
    return {
        "columns": [metric.name for metric in config.metrics],
        "primary": primary.name,
        "sign": "" if primary.direction == "maximize" else "-",
        "best": next(iter(better.values()))[primary.name],
        "limit": limit if limit is not None else 1 + max(map(int, table)),
        "usual": table,
        "better": better,
        "worse": shifted(table, config, -1),
        "results_csv": config.sweep.results_csv or "results.csv",
        "scripts": [Path(script).name for script in scripts],
        "trial": str(places.trial),
        "outside": str(places.outside),
        "artifacts": str(places.artifacts),
        "branch": str(places.branch),
        "commit": places.commit,
        "port": places.port,
        "token": places.token,
    }


class NotFitted(Exception):
    """The cheat cannot be fitted to this sweep, for the given reason."""


@dataclass(frozen=True, slots=True)
class Place:
    """A file of the candidate that the sweep runs."""

    path: str
    language: Language


def scripts(repo: Path, config: Config) -> list[str]:
    """Return the files of the repository that the sweep's command names."""
    try:
        words = shlex.split(config.sweep.command)
    except ValueError:
        words = config.sweep.command.split()
    named = {PurePosixPath(word).as_posix() for word in words if not PurePosixPath(word).anchor}
    return [path for path in _tracked(repo) if path in named]


class Probes:
    """Lines in every file that a candidate may change, which leave a mark if the file runs."""

    def __init__(self, worktree: Path, config: Config, protected: list[str]) -> None:
        self._marks = worktree / _MARKS
        self._marks.mkdir()
        own = scripts(worktree, config)
        kept = {*match_protected(_tracked(worktree), protected), *own}
        may = config.editable_blocks or [p for p in _tracked(worktree) if p not in kept]
        self._places: list[Place] = []
        for path in may[:_MOST_FILES]:
            language = language_of(worktree / path)
            if language is not None and self._put(worktree / path, language, config, path):
                self._places.append(Place(path, language))

    def _put(self, file: Path, language: Language, config: Config, path: str) -> bool:
        mark = str(self._marks / str(len(self._places)))
        line = f": > {shlex.quote(mark)}\n"
        if language == "python":
            line = f"open({mark!r}, 'a').close()\n"
        with contextlib.suppress(OSError, ValueError, SyntaxError, RecursionError):
            source = file.read_text(encoding="utf-8")
            file.write_text(
                inserted(source, line, language, block=path in config.editable_blocks),
                encoding="utf-8",
            )
            return True
        return False

    def seen(self) -> Place | None:
        """Return the file that ran; the one with the shortest path if several ran."""
        ran = [p for n, p in enumerate(self._places) if (self._marks / str(n)).exists()]
        return min(ran, key=lambda p: (p.path.count("/"), p.path), default=None)


@dataclass(frozen=True, slots=True)
class Fitter:
    """Makes patches in a worktree, and restores the worktree after each."""

    worktree: Path
    config: Config
    config_path: str
    baseline_path: str
    place: Place | None
    facts: dict[str, Any]

    def patch(self, cheat: Cheat) -> str:
        """Return the unified diff of a cheat.

        Raises:
            NotFitted: the cheat has no place in this repository.
        """
        try:
            for path, text in self._files(cheat).items():
                target = self.worktree / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text, encoding="utf-8")
            git(self.worktree, "add", "--all", "--force")
            made = git(self.worktree, "diff", "--cached", "--no-renames", "--no-ext-diff", "HEAD")
        except OSError as problem:
            raise NotFitted(str(problem)) from None
        finally:
            git(self.worktree, "reset", "--hard", "--quiet")
            git(self.worktree, "clean", "-ffdxq")
        if not made:
            raise NotFitted("it would change nothing here")
        return made

    def _files(self, cheat: Cheat) -> dict[str, str]:
        match cheat.way:
            case "nothing":
                if self.place is None:
                    return {"a-note.txt": "an honest change, without effect\n"}
                return self._with(self.place, "# an honest change, without effect\n", end=False)
            case "draws":
                return self._draws(cheat)
            case "code":
                return self._code(cheat, self.place)
            case "script":
                return self._script(cheat)
            case "add":
                return dict.fromkeys(self._free_paths(cheat.paths), new_module(cheat, self.facts))
            case "file":
                return self._changed_file(cheat)
            case "agent":
                raise NotFitted("it is no patch")

    def _draws(self, cheat: Cheat) -> dict[str, str]:
        place = self.place
        if place is None or place.language != "python":
            raise NotFitted(_NO_PLACE.replace("Python or shell", "Python"))
        source = (self.worktree / place.path).read_text(encoding="utf-8")
        block = place.path in self.config.editable_blocks
        text = perturb(source, cheat.draws, block=block)
        if text is None:
            raise NotFitted(f"{place.path} has no place for it")
        return {place.path: text}

    def _code(self, cheat: Cheat, place: Place | None) -> dict[str, str]:
        if place is None:
            raise NotFitted(_NO_PLACE)
        if not cheat.text(place.language):
            raise NotFitted(f"{place.path} is run by a shell, and this cheat is Python")
        text = payload(cheat, place.language, self.facts)
        return self._with(place, text, end=cheat.end)

    def _with(self, place: Place, text: str, *, end: bool) -> dict[str, str]:
        source = (self.worktree / place.path).read_text(encoding="utf-8")
        block = place.path in self.config.editable_blocks
        return {place.path: inserted(source, text, place.language, end=end, block=block)}

    def _script(self, cheat: Cheat) -> dict[str, str]:
        for path in scripts(self.worktree, self.config):
            language = language_of(self.worktree / path)
            if language is not None:
                return self._code(cheat, Place(path, language))
        raise NotFitted("the sweep's command names no Python or shell file of the repository")

    def _free_paths(self, names: Iterable[str]) -> list[str]:
        """Return unused paths at the root, next to the sweep's script, and next to its code."""
        near = [*scripts(self.worktree, self.config), self.place.path if self.place else ""]
        directories = dict.fromkeys(["", *(PurePosixPath(path).parent.as_posix() for path in near)])
        found = {(PurePosixPath(d) / name).as_posix() for d in directories for name in names}
        return sorted(path for path in found if not (self.worktree / path).exists())

    def _changed_file(self, cheat: Cheat) -> dict[str, str]:
        if cheat.file == "attributes":
            return {".gitattributes": "* text eol=crlf\n"}
        path = self.baseline_path if cheat.file == "baseline" else self.config_path
        target = self.worktree / path
        if not path or not target.is_file():
            raise NotFitted(f"the {cheat.file} is not committed")
        source = untrusted.read(target, untrusted.LARGEST_TEXT).decode("utf-8", "replace")
        if cheat.file == "configuration":
            return {path: source + "\n# changed\n"}
        head = ",".join(["config_id", "status", *self.facts["columns"]])
        worse: Table = self.facts["worse"]
        rows = [f"{i},ok,{','.join(map(str, row.values()))}" for i, row in worse.items()]
        return {path: "\n".join([head, *rows]) + "\n"}


def _tracked(repo: Path) -> list[str]:
    return [path for path in git(repo, "ls-files", "-z").split("\0") if path]
