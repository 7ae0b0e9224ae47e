"""`treewright prove PROJECT`: every `sorry` of a Lake project, in the order of its imports."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from treewright.cli.output import echo
from treewright.kernel.errors import EXIT_FAILURE, EXIT_INTERRUPTED, TreewrightError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from treewright.lean.host import Host
    from treewright.lean.replay import Replayer
    from treewright.lean.session import LeanSession
    from treewright.lean.workspace.project import Project
    from treewright.mcts.run import RunResult
    from treewright.mcts.settings import Settings


def prove_project(root: Path, settings: Settings, flags: dict[str, Any]) -> None:
    """One run for each file with a `sorry`, and a patch for each that has a proof now."""
    import msgspec

    from treewright.cli.hosts import opened_host
    from treewright.cli.prove_serve import announce, warm_host
    from treewright.cli.signals import cancel_on_signals

    if "run_id" in flags:
        raise UsageError("--run-id names one run, and a project gets one for each of its files")
    host = opened_host(flags.get("requested"), flags.get("sandbox"), root)
    if flags.get("library", True):
        from treewright.mcts.sources.opening import with_library

        settings = with_library(settings, host, announce)
    problems: list[dict[str, str]] = []
    results: list[RunResult] = []
    with contextlib.ExitStack() as stack:
        cancel = stack.enter_context(cancel_on_signals())
        host = stack.enter_context(warm_host(host, flags))
        lean = stack.enter_context(_Lean(root, host, settings))
        for path in lean.files():
            if cancel.is_set():
                break
            try:
                results.append(_prove_file(path, lean, settings, flags, cancel.is_set))
            except TreewrightError as error:
                problems.append({"file": str(path), "error": str(error)})
                echo(f"{path}: {error}", err=True)
        stopped = cancel.is_set()
    proved, total = sum(r.proved for r in results), sum(r.total for r in results)
    if flags.get("as_json"):
        document = {"proved": proved, "total": total, "files": results, "problems": problems}
        echo(msgspec.json.encode(document).decode())
    else:
        echo(f"{proved} of {total} proved, in {len(results)} files")
    if stopped:
        raise click.exceptions.Exit(EXIT_INTERRUPTED)
    if problems or proved < total:
        raise click.exceptions.Exit(EXIT_FAILURE)


class _Lean:
    """The session and the replay check for one project, until a file of it is changed."""

    def __init__(self, root: Path, host: Host, settings: Settings) -> None:
        from treewright.lean.workspace.discovery import find_root

        base = find_root(root)
        if base is None:
            raise UsageError(f"{root} is in no Lake project: it needs a lakefile.toml")
        self.base = base
        self._root = root
        self._host = host
        self._axioms = frozenset(settings.axioms)
        self._replayer: Replayer | None = None
        self.session: LeanSession | None = None
        self.project = self._open()

    def __enter__(self) -> _Lean:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def _open(self) -> Project | None:
        from treewright.cli.projects import project_of

        return project_of(self._host, self._root)

    def files(self) -> list[Path]:
        """Those with something open, each behind what it imports."""
        from treewright.lean.sorries import lean_files
        from treewright.lean.workspace.ordering import by_written_imports

        found = [path for path in lean_files(self._root) if path.name != "lakefile.lean"]
        if self.project is None:
            ordered = by_written_imports(self._root, found)
        else:
            ordered = self.project.ordered(found)
        return [p for p in ordered if any(word in p.read_bytes() for word in (b"sorry", b"admit"))]

    @property
    def replayer(self) -> Replayer:
        from treewright.lean.replay import Replayer

        if self._replayer is None:
            self._replayer = Replayer(self._host, axioms=self._axioms, project=self.project)
        return self._replayer

    def sessions(self) -> LeanSession:
        from treewright.lean.host_session import HostSession

        return HostSession(self._host, project=self.project)

    def renew(self) -> None:
        """Ends the processes: the next ones read the project as it is then."""
        self._end()
        self.project = self._open()

    def _end(self) -> None:
        for process in (self.session, self._replayer):
            if process is not None:
                process.close()
        self.session = self._replayer = None


def _prove_file(
    path: Path,
    lean: _Lean,
    settings: Settings,
    flags: dict[str, Any],
    stop_asked: Callable[[], bool],
) -> RunResult:
    from treewright.cli.prove_progress import narrator
    from treewright.cli.prove_sources import opened_source
    from treewright.mcts import run, targets
    from treewright.mcts.proving import Proving

    told = replace(
        narrator(sys.stderr),
        run=lambda record, directory: echo(f"{path}: run {record.run_id}", err=True),
    )
    proving = Proving(
        lean.sessions, lean.replayer, lean.project, Path.cwd(), opened_source, told, stop_asked,
        lean.session,
    )  # fmt: skip
    try:
        result = proving.prove(targets.file_target(path), settings)
    finally:
        lean.session = proving.session
    directory = Path(result.directory)
    if patch := run.write_patch(directory, result, lean.base):
        echo(f"{path}: {result.proved} of {result.total} proved; patch: {patch}", err=True)
    if flags.get("in_place") and result.complete and run.write_in_place(directory, result):
        echo(f"written into {path}", err=True)
        lean.renew()
    return result
