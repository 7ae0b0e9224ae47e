"""Run the program in this process, on the worker's Lean.

For tests of a command's results and messages. Tests that depend on a child process use the fixture
`treewright`; tests of the start and end of Lean start their own."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import io
import os
import pkgutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, cast

import pytest

from treewright import cli, lean, orchestrator, proving
from treewright.cli.main import main
from treewright.lean.hosts.wasm.home import LeanHome
from treewright.lean.project.project import Project
from treewright.lean.session import host_session
from treewright.lean.session.host_session import HostSession
from treewright.lean.session.process import RestartedProcess
from treewright.lean.verify import replayer as replaying
from treewright.lean.verify.replayer import Replayer
from treewright.lean.verify.verdict import DEFAULT_AXIOMS

Program = Callable[..., CompletedProcess[str]]


class Lent:
    """A session that its borrower cannot close."""

    def __init__(self, session: HostSession) -> None:
        self._session = session

    def __getattr__(self, name: str) -> object:
        return getattr(self._session, name)

    def __enter__(self) -> Lent:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def close(self) -> None:
        pass


@functools.cache
def _import_all() -> None:
    """Import every module: a module imported later would keep the lent objects for ever."""
    for package in (cli, lean, proving, orchestrator):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(found.name)


@dataclasses.dataclass
class LentLean:
    """One session and a replay check in the place of `LeanProcesses`."""

    start: Callable[[], HostSession]
    replayer: Replayer
    project: Project | None = None
    session: HostSession | None = None

    def kept_session(self) -> HostSession:
        if self.session is None or not self.session.alive:
            self.session = self.start()
        return self.session


class LentProcess:
    """A process that its borrower cannot end."""

    def __init__(self, kept: RestartedProcess[Any]) -> None:
        self._kept = kept

    def __getattr__(self, name: str) -> object:
        return getattr(self._kept, name)

    def close(self) -> None:
        pass


def project_replayer(
    shared: Replayer, project: Project, axioms: frozenset[str] = DEFAULT_AXIOMS
) -> Replayer:
    """Return the worker's replayer for a project; it does not load the project or read texts."""
    made = Replayer(shared._host, axioms=axioms, project=project)
    made.processes.judge = cast("RestartedProcess[Any]", LentProcess(shared.processes.judge))
    return made


def lent_replayer(shared: Replayer, axioms: frozenset[str]) -> Replayer:
    """Return a replayer with another policy on the running processes."""
    made = Replayer(shared._host, axioms=axioms)
    made.processes = shared.processes
    made._originals = shared._originals
    made.close = lambda: None
    return made


def lend_lean(
    patch: pytest.MonkeyPatch, lean_session: Callable[[], HostSession], shared: Replayer
) -> None:
    """Give callers that start a session or replay of the usual kind the worker's process."""

    def session(
        home: LeanHome,
        imports: Sequence[str] = ("Init",),
        preamble: str = "",
        project: Project | None = None,
    ) -> object:
        if tuple(imports) != ("Init",) or preamble or project is not None:
            return HostSession(home, imports, preamble, project)
        return Lent(lean_session())

    def replayer(
        home: LeanHome,
        *,
        axioms: frozenset[str] = DEFAULT_AXIOMS,
        project: Project | None = None,
    ) -> Replayer:
        if project is not None:
            return project_replayer(shared, project, axioms)
        return lent_replayer(shared, axioms)

    _import_all()
    for module in list(sys.modules.values()):
        if module.__name__.startswith("treewright."):
            for name, kind, lent in (
                ("HostSession", HostSession, session),
                ("Replayer", Replayer, replayer),
            ):
                if vars(module).get(name) is kind:
                    patch.setattr(module, name, lent)
    assert host_session.HostSession is session
    assert replaying.Replayer is replayer


def run_here(
    patch: pytest.MonkeyPatch, arguments: Sequence[str], cwd: Path, stdin: str = ""
) -> CompletedProcess[str]:
    """Return the result that `subprocess.run` would give for the same call."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    before = Path.cwd()
    with patch.context() as changed:
        changed.setattr(sys, "argv", ["treewright", *arguments])
        changed.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        changed.setattr(sys, "stdout", out)
        changed.setattr(sys, "stderr", err)
        os.chdir(cwd)
        try:
            main()
            code = 0
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
        finally:
            os.chdir(before)
    written = []
    for stream in (out, err):
        stream.flush()
        written.append(stream.buffer.getvalue().decode())  # pyright: ignore[reportAttributeAccessIssue]
    return CompletedProcess(list(arguments), code, *written)
