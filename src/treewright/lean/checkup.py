"""Checks that Lean works here, for `treewright doctor` and `treewright lean doctor`.

The first looks at the files of both Leans and starts none; the second proves a theorem.
"""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from treewright.kernel.errors import TreewrightError
from treewright.kernel.health_checks import Check
from treewright.lean.hosts.native.toolchain import find_project, find_toolchain, too_old
from treewright.lean.hosts.wasm.compiler import WasmCompiler
from treewright.lean.hosts.wasm.home import LeanHome
from treewright.lean.hosts.wasm.install import (
    ensure_installed,
    find_installed,
    installed_path,
    is_installed,
)
from treewright.lean.hosts.wasm.manifest import verify_home
from treewright.lean.processes import LeanProcesses
from treewright.lean.project.included_files import IncludedFile
from treewright.lean.project.lakefile import Options
from treewright.lean.project.module_store import Header, ModuleStore
from treewright.lean.project.project import Compiled, Project
from treewright.lean.project.workspace import open_workspace
from treewright.lean.session.answers import ProofState
from treewright.lean.session.errors import LeanError
from treewright.lean.sorries import lean_files

_GROUP = "lean"
_NAME = "bundled Lean"
_NATIVE = "native Lean"
_PROJECT = "Lake project"
_COMPILED = "its modules"
_MOST_SHOWN = 3
_PROJECT_HINT = "--repo DIR looks elsewhere"
_ROUNDS = 25
_HINT = "treewright lean install (or the first run) fetches it"
STATEMENT = "∀ p q r : Prop, (p ∧ q) ∧ r → r ∧ q ∧ p"
SCRIPT = (
    "intro p q r h",
    "obtain ⟨⟨hp, hq⟩, hr⟩ := h",
    "refine ⟨hr, ?_, ?_⟩",
    "all_goals assumption",
)


def checks(repo: Path | None) -> Iterator[Check]:
    """Reads every file of the home; starts and fetches nothing."""
    yield _bundled()
    yield from _native(repo or Path.cwd())


def _bundled() -> Check:
    if not is_installed():
        return Check(_GROUP, _NAME, "absent", "not installed yet", _HINT)
    path = installed_path()
    try:
        count = verify_home(path, full=True)
    except TreewrightError as error:
        return Check(_GROUP, _NAME, "failed", str(error))
    return bundled_lean(_GROUP, _NAME, f"{count} files verified in {path}")


def _native(start: Path) -> Iterator[Check]:
    """The Lake project around `start`, its toolchain, and what keeps native Lean in bounds."""
    project = find_project(start)
    if project is None:
        yield Check(_GROUP, _PROJECT, "absent", "not inside one", _PROJECT_HINT)
    else:
        built = sum(1 for _ in (project / ".lake" / "build").rglob("*.olean"))
        yield Check(_GROUP, _PROJECT, "ok", f"{project}; {built} modules built by lake")
        yield from _compiled(project)
    try:
        toolchain = find_toolchain(project)
    except TreewrightError as error:
        yield Check(_GROUP, _NATIVE, "failed", str(error))
        return
    if isinstance(toolchain, str):
        yield Check(_GROUP, _NATIVE, "absent", toolchain, "--lean native needs one; wasm does not")
        return
    if problem := too_old(toolchain):
        yield Check(_GROUP, _NATIVE, "warning", problem)
        return
    yield Check(_GROUP, _NATIVE, "ok", f"Lean {toolchain.name} in {toolchain.prefix}")
    if shutil.which("bwrap") is None:
        hint = "install bubblewrap for --sandbox"
        yield Check(_GROUP, "sandbox", "absent", "native Lean runs with your rights", hint)
    else:
        yield Check(_GROUP, "sandbox", "ok", "bubblewrap; used with --sandbox")


def _compiled(project: Path) -> Iterator[Check]:
    """Return the check of the project's modules in the cache of the bundled Lean."""
    if not is_installed():
        return
    try:
        kept = read_project_modules(project)
    except TreewrightError as error:
        yield Check(_GROUP, _COMPILED, "failed", str(error))
        return
    parts = [f"the bundled Lean has compiled {kept.compiled}"]
    if kept.untried:
        parts.append(f"{kept.untried} when they are needed")
    hint = ""
    if kept.wrong:
        parts.append(f"{len(kept.wrong)} cannot be imported")
        hint = "; ".join(list(kept.wrong.values())[:_MOST_SHOWN])
    yield Check(_GROUP, _COMPILED, "warning" if kept.wrong else "ok", ", ".join(parts), hint)


def bundled_lean(group: str, name: str, ready: str) -> Check:
    """A line about something that needs the bundled Lean; `ready` is what to say if it is there."""
    try:
        home = find_installed()
    except TreewrightError as error:
        return Check(group, name, "absent", "what runs it is missing", str(error))
    if home is None:
        return Check(group, name, "absent", "the bundled Lean is not installed yet", _HINT)
    return Check(group, name, "ok", ready)


@dataclass(slots=True)
class ProjectModules:
    """The project's modules in the cache: compiled, impossible to compile (with the reason),
    untried."""

    compiled: int = 0
    wrong: dict[str, str] = field(default_factory=dict[str, str])
    untried: int = 0


def read_project_modules(start: Path, store: ModuleStore | None = None) -> ProjectModules:
    """For the modules of the project around `start`. Starts no Lean and compiles nothing."""
    workspace = open_workspace(start)
    kept = ProjectModules()
    if workspace is None:
        return kept
    project = Project(workspace, _Untried(ensure_installed), store)
    for path in lean_files(workspace.root):
        module = workspace.module_of(path)
        if module is None:
            continue
        try:
            problem = project.problem_of(module)
        except _NotThere:
            kept.untried += 1
            continue
        if problem:
            kept.wrong[module] = problem
        else:
            kept.compiled += 1
    return kept


class _NotThere(Exception):
    pass


class _Untried(WasmCompiler):
    """Has the version of the bundled Lean, and does nothing."""

    def headers(self, texts: Sequence[str]) -> list[Header]:
        raise _NotThere

    def compile(
        self,
        module: str,
        text: str,
        options: Options,
        imports: Iterable[Compiled],
        files: Sequence[IncludedFile] = (),
    ) -> NoReturn:
        raise _NotThere


@dataclass(frozen=True, slots=True)
class DoctorReport:
    """What `treewright lean doctor` prints."""

    backend: str
    reason: str
    lean: str
    detail: str
    startup_seconds: float
    steps_per_second: float
    median_step_ms: float
    replay: str
    proof: str
    home_files_verified: int = 0
    commit: str = ""


def examine(lean: LeanProcesses, reason: str) -> DoctorReport:
    """Prove a theorem step by step, repeatedly, and once through the replay check.

    Every file of the bundled Lean is read and compared with the installed one.
    """
    files = verify_home(lean.host.path, full=True) if isinstance(lean.host, LeanHome) else 0
    session = lean.new_session()
    times: list[float] = []
    for _ in range(_ROUNDS):
        state = session.start(STATEMENT)
        for tactic in SCRIPT:
            if not isinstance(state, ProofState):
                raise LeanError(f"Lean works, but not as it should: {state}")
            begun = time.perf_counter()
            state = session.run_tactic(state, tactic)
            times.append(time.perf_counter() - begun)
        if not (isinstance(state, ProofState) and state.complete):
            raise LeanError(f"Lean did not close a simple goal: {state}")
    verdict = lean.replayer.theorem(STATEMENT, "\n".join(SCRIPT))
    if not verdict.proved:
        raise LeanError(f"the replay check did not accept a correct proof: {verdict.detail}")
    info = session.info
    return DoctorReport(
        info.backend,
        reason,
        info.lean,
        info.detail,
        round(info.startup_seconds, 2),
        round(len(times) / sum(times), 1),
        round(statistics.median(times) * 1000, 2),
        "proved",
        STATEMENT,
        files,
        info.commit,
    )
