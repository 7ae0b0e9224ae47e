"""Proving a project's sorries in the background, without touching the project.

A pass reads every file with Lean, after the files that it imports, and gives each open declaration
to the scheduler. The proofs are filled in and the filled file is replayed as a whole before it is
written: as a copy and a patch in the run's directory, or in place if the user asks for that.

A pass that proved something is followed by another one, because declarations that rest on the new
proofs may be provable now. A pass that proved nothing is followed by one with twice the time, up to
eight times. After that the run waits until a file changes.
"""

from __future__ import annotations

import asyncio
import contextlib
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from treewright.kernel.clock import now, timestamp
from treewright.kernel.errors import StorageError, TreewrightError
from treewright.kernel.storage import atomic
from treewright.kernel.storage.run_directory import STATE_DIR
from treewright.lean.session.answers import CheckResult
from treewright.lean.sorries import FileSorries, from_check, lean_files, patch_of
from treewright.orchestrator.config import OrchestratorConfig
from treewright.orchestrator.goals import sorry_goals, statements
from treewright.orchestrator.ledger.attempts import collect_statistics, describe_goals
from treewright.orchestrator.ledger.ledger import Ledger
from treewright.orchestrator.scheduler import Scheduler
from treewright.orchestrator.scheduling.dispatch import AttemptBackend, local_backend
from treewright.orchestrator.scheduling.stop_signals import run_unless_set, stop_on_signals
from treewright.orchestrator.types import Goal, Result
from treewright.orchestrator.workers.lean_access import LeanAccess

MAX_TIME_FACTOR = 8
DEFAULT_POLL_SECONDS = 2.0
CHECK_SECONDS = 300.0


class Proved(msgspec.Struct, frozen=True):
    """A declaration that this run proved."""

    file: str
    declaration: str
    strategy: str
    scripts: tuple[str, ...]
    at: str


@dataclass(slots=True)
class _File:
    path: Path
    original: str
    text: str


@dataclass(slots=True)
class Background:
    """One run over one project.

    Args:
        root: The project, or a single file.
        ledger: Records every attempt.
        config: The settings of the scheduler.
        in_place: Also write proofs into the project's own files.
        announce: Called with a line for each event.
        poll_seconds: How often a waiting run looks for changed files.
        run_id: The name of the run; by default a timestamp.
        backend: Where attempts run; by default in threads of this process.
        lean: The Lean processes; by default the run starts its own. The run closes them.
    """

    root: Path
    ledger: Ledger
    config: OrchestratorConfig
    in_place: bool = False
    announce: Callable[[str], None] = lambda _: None
    poll_seconds: float = DEFAULT_POLL_SECONDS
    run_id: str = ""
    backend: AttemptBackend | None = None
    lean: LeanAccess | None = None
    proved: list[Proved] = field(default_factory=list)
    _files: dict[Path, _File] = field(default_factory=dict)
    _stop: asyncio.Event = field(default_factory=asyncio.Event)
    _scheduler: Scheduler | None = None
    _announced: set[str] = field(default_factory=set)
    _has_waited: bool = False

    def __post_init__(self) -> None:
        self.run_id = self.run_id or f"bg-{now():%Y%m%d-%H%M%S-%f}"

    @property
    def directory(self) -> Path:
        """The directory that the run writes to."""
        base = self.root if self.root.is_dir() else self.root.parent
        return base / STATE_DIR / "bg" / self.run_id

    def stop(self) -> None:
        """End the run in order: cancel the running attempts, which can be continued later."""
        self._stop.set()
        if self._scheduler is not None:
            self._scheduler.shutdown()

    async def run_until_signalled(self, *, once: bool = False) -> None:
        """Run as `run` does, until a signal stops the run in order."""
        with stop_on_signals(self.stop):
            await self.run(once=once)

    async def run(self, *, once: bool = False) -> None:
        """Make passes until `stop` is called; with `once`, until a pass proves nothing."""
        backend = self.backend or local_backend(self.config)
        lean = self.lean or LeanAccess(
            backend.lean_sessions(self.config), start=self.root, announce=self._announce_once
        )
        factor = 1
        try:
            while not self._stop.is_set():
                # Read before the pass: a file that changes during the pass has changed, too.
                seen = self._modification_times()
                if await self._pass(lean, factor):
                    continue
                if once:
                    return
                if factor < MAX_TIME_FACTOR:
                    factor *= 2
                    continue
                self.announce("nothing more to try; waiting for a file to change")
                while not self._stop.is_set() and self._modification_times() == seen:
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self._stop.wait(), self.poll_seconds)
                factor = 1
        finally:
            await lean.close()

    # -- one pass -------------------------------------------------------------------------

    async def _pass(self, lean: LeanAccess, factor: int) -> int:
        """Try every open declaration with `factor` times the time; return how many were proved."""
        timeouts = {s: factor * self.config.timeout(s) for s in self.config.portfolio}
        config = msgspec.structs.replace(self.config, timeouts=timeouts, reuse=True)
        files = await lean.sort_by_imports(lean_files(self.root))
        limit = f", with {factor} times the time" if factor > 1 else ""
        self.announce(f"reading {len(files)} Lean files{limit}")
        proved = 0
        for path in files:
            if self._stop.is_set():
                break
            proved += await self._work_on(path, lean, config)
        goals = describe_goals(collect_statistics(self.ledger)["goals"])
        self.announce(f"end of the pass: {proved} proved; the ledger has {goals}")
        return proved

    async def _work_on(self, path: Path, lean: LeanAccess, config: OrchestratorConfig) -> int:
        file = self._read(path)
        if file is None or ("sorry" not in file.text and "admit" not in file.text):
            return 0
        await lean.refresh()
        found = await run_unless_set(self._stop, self._extract(file, lean))
        if found is None:
            return 0
        goals = sorry_goals.project_goals(found, self.root)
        if not goals:
            return 0
        name = sorry_goals.relative_name(path, self.root)
        self.announce(f"{name}: {len(goals)} open declarations")
        queue: asyncio.Queue[Goal] = asyncio.Queue()
        for goal in goals:
            queue.put_nowait(goal)

        def announce_failure(goal: Goal, result: Result) -> None:
            if not result.success:
                self.announce(f"not proved {goal.id}: {result.error}")

        async with Scheduler(
            config, ledger=self.ledger, lean=lean, backend=self.backend
        ) as scheduler:
            self._scheduler = scheduler
            scheduler.throttle.on_first_wait = self._announce_first_wait
            for strategy, reason in scheduler.excluded.items():
                self._announce_once(f"without {strategy}: {reason}")
            results = await scheduler.process_queue(queue, announce_failure)
            self._scheduler = None
        solved = [
            (goal, results[goal.id])
            for goal in goals
            if goal.id in results and results[goal.id].success
        ]
        return await self._keep(file, solved, lean) if solved else 0

    def _announce_first_wait(self, text: str) -> None:
        """Announce that the throttle delays starts, once in a run: each file has a scheduler."""
        if not self._has_waited:
            self._has_waited = True
            self.announce(text)

    def _read(self, path: Path) -> _File | None:
        """Return a file with the proofs of this run, or as its author has changed it."""
        try:
            text = path.read_bytes().decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            self._announce_once(f"{path}: cannot be read: {error}")
            return None
        known = self._files.get(path)
        if known is None or text not in (known.original, known.text):
            known = self._files[path] = _File(path, text, text)
        return known

    async def _extract(self, file: _File, lean: LeanAccess) -> FileSorries:
        name = sorry_goals.relative_name(file.path, self.root)
        try:
            async with lean.session() as session:
                result = await session.check(file.text, sorries=True, timeout=CHECK_SECONDS)
        except TreewrightError as error:
            self._announce_once(f"{name}: {error}")
            return FileSorries(file.path, file.text, ())
        if not isinstance(result, CheckResult):
            self._announce_once(f"{name}: could not be elaborated: {result}")
            return FileSorries(file.path, file.text, ())
        for error in result.errors:
            self._announce_once(error.format(name))
        extracted = from_check(file.text, result)
        for sorry in (s for s in extracted if s.trouble is not None):
            self._announce_once(f"{name}:{sorry.line}: left out: an error in the file concerns it")
        usable = tuple(s for s in extracted if s.trouble is None)
        found = FileSorries(file.path, file.text, usable)
        for sorry in sorry_goals.unnamed_sorries(found):
            self._announce_once(
                f"{name}:{sorry.line}: left out: an `example` has no name to prove it under"
            )
        return found

    async def _keep(self, file: _File, solved: list[tuple[Goal, Result]], lean: LeanAccess) -> int:
        """Fill in the proofs, replay the filled file as a whole, and write it."""
        places = [goal.place for goal, _ in solved if goal.place is not None]
        together = statements.join_places(places, file.text)
        scripts = [script for _, result in solved for script in result.tactics]
        _, text = statements.fill_holes(together, scripts)
        if len(solved) > 1:
            names = [place.declaration for place in places]
            work = lean.check_text(file.text, text, names, CHECK_SECONDS)
            verdict = await run_unless_set(self._stop, work)
            if verdict is None:
                self.announce(f"{together.file}: stopped; its new proofs are in the ledger")
                return 0
            if not verdict.proved:
                why = "could not be checked" if verdict.is_fault else "do not fit"
                self.announce(f"{together.file}: the proofs {why} together: {verdict.detail}")
                return await self._keep(file, solved[:1], lean)
        self._write(file, text)
        for goal, result in solved:
            assert goal.place is not None
            place, strategy = goal.place, str(result.strategy)
            self.proved.append(
                Proved(place.file, place.declaration, strategy, result.tactics, timestamp())
            )
            self.announce(f"proved {place.file}: {place.declaration} ({strategy})")
        document = {"run_id": self.run_id, "project": str(self.root), "proved": self.proved}
        data = msgspec.json.format(msgspec.json.encode(document), indent=2)
        atomic.write_bytes(self.directory / "summary.json", data + b"\n")
        return len(solved)

    # -- writing --------------------------------------------------------------------------

    def _write(self, file: _File, text: str) -> None:
        name = sorry_goals.relative_name(file.path, self.root)
        if self.in_place and (problem := _replace_file(file.path, file.text, text)):
            self.announce(f"{name}: {problem}; the proof is in the run's directory")
        file.text = text
        copy = self.directory / "files" / name
        atomic.make_directory(copy.parent)
        atomic.write_bytes(copy, text.encode())
        patch = self.directory / "patches" / f"{name}.patch"
        atomic.make_directory(patch.parent)
        atomic.write_bytes(patch, patch_of(name, file.original, text).encode())

    def _modification_times(self) -> dict[Path, int]:
        times = {}
        for path in lean_files(self.root):
            try:
                times[path] = path.stat().st_mtime_ns
            except OSError:
                continue
        return times

    def _announce_once(self, text: str) -> None:
        if text not in self._announced:
            self._announced.add(text)
            self.announce(text)


def _replace_file(path: Path, expected: str, text: str) -> str:
    """Write an author's file in place, through links and with its mode.

    Returns:
        The reason why the file was not written, or an empty text.
    """
    target = path.resolve()
    try:
        if target.read_bytes() != expected.encode():
            return "was changed meanwhile"
        mode = stat.S_IMODE(target.stat().st_mode)
        atomic.write_bytes(target, text.encode())
        target.chmod(mode)
    except OSError as error:
        return f"cannot be written: {error.strerror}"
    except StorageError as error:
        return str(error)
    return ""
