"""Working through a project's `sorry`s until told to stop, without touching the project.

A pass reads every file with Lean, each behind those it imports, gives each open declaration to
the scheduler, fills in what was proved, and has the filled file replayed as a whole before it is
written: as a copy and a patch in the run's directory, or in place if that was asked for. A pass
that found something is followed by another (what rested on the new proofs may work now); one that
did not, by one with twice the time, up to eight times; then it waits until a file changes.
"""

from __future__ import annotations

import asyncio
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
from treewright.orchestrator.goals import project, statements
from treewright.orchestrator.ledger.store import Ledger
from treewright.orchestrator.scheduler import Scheduler
from treewright.orchestrator.scheduling.dispatch import Attempting, beside
from treewright.orchestrator.scheduling.stopping import stopping_on_signals, unless_set
from treewright.orchestrator.types import Goal, Place, Result
from treewright.orchestrator.workers.lean_access import LeanAccess

LARGEST_FACTOR = 8
DEFAULT_POLL_SECONDS = 2.0
CHECK_SECONDS = 300.0


class Proved(msgspec.Struct, frozen=True):
    """A declaration that is proved now."""

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
    """One run over one project. `announce` gets a line for each thing that happens."""

    root: Path
    ledger: Ledger
    config: OrchestratorConfig
    in_place: bool = False
    announce: Callable[[str], None] = lambda _: None
    poll_seconds: float = DEFAULT_POLL_SECONDS
    run_id: str = ""
    attempting: Attempting | None = None
    lean: LeanAccess | None = None
    proved: list[Proved] = field(default_factory=list)
    _files: dict[Path, _File] = field(default_factory=dict)
    _stop: asyncio.Event = field(default_factory=asyncio.Event)
    _scheduler: Scheduler | None = None
    _said: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.run_id = self.run_id or f"bg-{now():%Y%m%d-%H%M%S-%f}"

    @property
    def directory(self) -> Path:
        base = self.root if self.root.is_dir() else self.root.parent
        return base / STATE_DIR / "bg" / self.run_id

    def stop(self) -> None:
        """Ends the run in order; what is in work is cancelled and can be continued."""
        self._stop.set()
        if self._scheduler is not None:
            self._scheduler.shutdown()

    async def run_until_signalled(self, *, once: bool = False) -> None:
        """`run` as a process of its own does it: a signal stops it in order."""
        with stopping_on_signals(self.stop):
            await self.run(once=once)

    async def run(self, *, once: bool = False) -> None:
        where = self.attempting or beside(self.config)
        lean = self.lean or LeanAccess(
            where.lean_sessions(self.config), start=self.root, announce=self._say_once
        )
        factor = 1
        try:
            while not self._stop.is_set():
                # Before the pass: what changes while it runs is a change too.
                seen = self._stamps()
                if await self._pass(lean, factor):
                    continue
                if once:
                    return
                if factor < LARGEST_FACTOR:
                    factor *= 2
                    continue
                self.announce("nothing more to try; waiting for a file to change")
                await self._wait_for_a_change(seen)
                factor = 1
        finally:
            await lean.close()

    # -- one pass -------------------------------------------------------------------------

    async def _pass(self, lean: LeanAccess, factor: int) -> int:
        """How many declarations were proved, over all files, with `factor` times the time."""
        timeouts = {s: factor * self.config.timeout(s) for s in self.config.portfolio}
        config = msgspec.structs.replace(self.config, timeouts=timeouts, reuse=True)
        total = 0
        for path in await lean.ordered(lean_files(self.root)):
            if self._stop.is_set():
                break
            total += await self._work_on(path, lean, config)
        return total

    async def _work_on(self, path: Path, lean: LeanAccess, config: OrchestratorConfig) -> int:
        file = self._read(path)
        if file is None or ("sorry" not in file.text and "admit" not in file.text):
            return 0
        await lean.refresh()
        found = await unless_set(self._stop, self._extract(file, lean))
        if found is None:
            return 0
        goals = list(project.goals(found, self.root))
        if not goals:
            return 0
        queue: asyncio.Queue[Goal] = asyncio.Queue()
        for goal in goals:
            queue.put_nowait(goal)
        async with Scheduler(
            config, ledger=self.ledger, lean=lean, attempting=self.attempting
        ) as scheduler:
            self._scheduler = scheduler
            scheduler.throttle.on_first_wait = self._say_once
            for strategy, reason in scheduler.excluded.items():
                self._say_once(f"without {strategy}: {reason}")
            results = await scheduler.process_queue(queue)
            self._scheduler = None
        solved = [(goal, results[goal.id]) for goal in goals if _succeeded(results, goal)]
        return await self._keep(file, solved, lean) if solved else 0

    def _read(self, path: Path) -> _File | None:
        """The file as this run sees it: with its proofs, unless its author changed it."""
        try:
            text = path.read_bytes().decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            self._say_once(f"{path}: cannot be read: {error}")
            return None
        known = self._files.get(path)
        if known is None or text not in (known.original, known.text):
            known = self._files[path] = _File(path, text, text)
        return known

    async def _extract(self, file: _File, lean: LeanAccess) -> FileSorries:
        name = project.relative(file.path, self.root)
        try:
            async with lean.session() as session:
                result = await session.check(file.text, sorries=True, timeout=CHECK_SECONDS)
        except TreewrightError as error:
            self._say_once(f"{name}: {error}")
            return FileSorries(file.path, file.text, ())
        if not isinstance(result, CheckResult):
            self._say_once(f"{name}: could not be elaborated: {result}")
            return FileSorries(file.path, file.text, ())
        for error in result.errors:
            self._say_once(error.format(name))
        extracted = from_check(file.text, result)
        for sorry in (s for s in extracted if s.trouble is not None):
            self._say_once(f"{name}:{sorry.line}: left out: an error in the file concerns it")
        usable = tuple(s for s in extracted if s.trouble is None)
        found = FileSorries(file.path, file.text, usable)
        for sorry in project.unnamed(found):
            self._say_once(f"{name}:{sorry.line}: left out: only what has a name can be proved")
        return found

    async def _keep(self, file: _File, solved: list[tuple[Goal, Result]], lean: LeanAccess) -> int:
        """Fills in the proofs, has the file replayed once more as a whole, writes it."""
        places = [goal.place for goal, _ in solved if goal.place is not None]
        together = Place(
            file=places[0].file,
            source=file.text,
            declaration="",
            holes=tuple(hole for place in places for hole in place.holes),
            tactic_holes=frozenset().union(*(place.tactic_holes for place in places)),
        )
        scripts = [script for _, result in solved for script in result.tactics]
        _, text = statements.filled(together, scripts)
        if len(solved) > 1:
            names = [place.declaration for place in places]
            work = lean.check_text(file.text, text, names, CHECK_SECONDS)
            verdict = await unless_set(self._stop, work)
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
            place = goal.place
            self.proved.append(
                Proved(
                    place.file,
                    place.declaration,
                    str(result.strategy),
                    result.tactics,
                    timestamp(),
                )
            )
            self.announce(f"proved {place.file}: {place.declaration} ({result.strategy})")
        self._write_summary()
        return len(solved)

    # -- writing --------------------------------------------------------------------------

    def _write(self, file: _File, text: str) -> None:
        name = project.relative(file.path, self.root)
        if self.in_place and (problem := _replaced(file.path, file.text, text)):
            self.announce(f"{name}: {problem}; the proof is in the run's directory")
        file.text = text
        copy = self.directory / "files" / name
        atomic.make_directory(copy.parent)
        atomic.write_bytes(copy, text.encode())
        patch = self.directory / "patches" / f"{name}.patch"
        atomic.make_directory(patch.parent)
        atomic.write_bytes(patch, patch_of(name, file.original, text).encode())

    def _write_summary(self) -> None:
        document = {"run_id": self.run_id, "project": str(self.root), "proved": self.proved}
        data = msgspec.json.format(msgspec.json.encode(document), indent=2)
        atomic.write_bytes(self.directory / "summary.json", data + b"\n")

    # -- waiting --------------------------------------------------------------------------

    async def _wait_for_a_change(self, seen: dict[Path, int]) -> None:
        while not self._stop.is_set() and self._stamps() == seen:
            try:
                await asyncio.wait_for(self._stop.wait(), self.poll_seconds)
            except TimeoutError:
                continue

    def _stamps(self) -> dict[Path, int]:
        stamps = {}
        for path in lean_files(self.root):
            try:
                stamps[path] = path.stat().st_mtime_ns
            except OSError:
                continue
        return stamps

    def _say_once(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self.announce(text)


def _replaced(path: Path, expected: str, text: str) -> str:
    """Writes an author's file: the one a link leads to, with its mode. Else why not, or ''."""
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


def _succeeded(results: dict[str, Result], goal: Goal) -> bool:
    return goal.id in results and results[goal.id].success
