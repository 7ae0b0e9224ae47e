"""The state that all calls of a server share: roots, warm Leans, named goals, open runs.

The state of a named goal lives as long as its Lean session. After that, it is made again from its
origin: the text and its `sorry`, or the statement, and the tactics since. The oldest goals are
dropped.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from treewright.dashboard.proof_view import ProofLibrary
from treewright.dashboard.roots import Roots
from treewright.dashboard.tree_library import TreeLibrary
from treewright.kernel.errors import UsageError
from treewright.lean.choice import Choice, choose, open_host, open_project
from treewright.lean.hosts.host import Host
from treewright.lean.hosts.wasm.install import Progress, silent
from treewright.lean.processes import LeanProcesses
from treewright.lean.project.lakefile import LEAN, TOML
from treewright.lean.project.project import Project
from treewright.lean.project.workspace import MANIFEST, find_root
from treewright.lean.session.answers import ProofState
from treewright.lean.session.host_session import HostSession
from treewright.lean.session.inputs import module_name
from treewright.mcp_server.call import Call
from treewright.mcp_server.confinement import Confinement
from treewright.mcp_server.warm_lean import WarmLean
from treewright.premises.index import PremiseIndex
from treewright.premises.index_builder import default_path, ensure_index

MAX_WARM_LEANS = 3
"""Most Leans with running processes. Goals may refer to the others, which restart on demand."""
IDLE_SECONDS = 900.0

MAX_GOALS = 1_000
MAX_BYTES = 32 << 20
Making = Callable[[HostSession], ProofState]


@dataclass(slots=True, eq=False)
class KeptGoal:
    """A named goal. `make` makes its state in a session; `weight` is its size in bytes."""

    name: str
    lean: WarmLean
    make: Making
    session: HostSession
    state: ProofState
    weight: int = 0

    def in_session(self, session: HostSession) -> ProofState:
        """Return the state in a session; it is made again if it was in another session."""
        if session is not self.session:
            self.session, self.state = session, self.make(session)
        return self.state


class GoalStore:
    """The named goals of a server. Several threads may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, KeptGoal] = OrderedDict()
        self._freed: list[KeptGoal] = []
        self._bytes = 0
        self._last = 0

    def keep(
        self,
        lean: WarmLean,
        make: Making,
        session: HostSession,
        state: ProofState,
        weight: int = 0,
    ) -> KeptGoal:
        """Name a goal, and drop the oldest goals beyond the limits."""
        with self._lock:
            self._last += 1
            goal = KeptGoal(f"g{self._last}", lean, make, session, state, weight)
            self._kept[goal.name] = goal
            self._bytes += weight
            while len(self._kept) > MAX_GOALS or (self._bytes > MAX_BYTES and len(self._kept) > 1):
                _, oldest = self._kept.popitem(last=False)
                self._bytes -= oldest.weight
                self._freed.append(oldest)
            return goal

    def find(self, name: str) -> KeptGoal:
        """Return the goal with a name.

        Raises:
            UsageError: There is no such goal, or it was dropped.
        """
        with self._lock:
            goal = self._kept.get(name)
            if goal is None:
                raise UsageError(
                    f"there is no goal {name!r}, or it was dropped; call lean_goals again"
                )
            self._kept.move_to_end(name)
            return goal

    def take_freed(self, session: HostSession) -> list[ProofState]:
        """Return the states of a session with goals that were dropped."""
        with self._lock:
            mine = [goal.state for goal in self._freed if goal.session is session]
            self._freed = [
                goal for goal in self._freed if goal.session is not session and goal.session.alive
            ]
            return mine

    def __len__(self) -> int:
        return len(self._kept)


class ServerState:
    """The state of one server.

    Args:
        lean: The value of `--lean`.
        most_seconds: The longest time limit that a call may ask for.
        installing: Told about the installation of the bundled Lean.
    """

    def __init__(
        self,
        roots: Sequence[Path],
        *,
        lean: str = "auto",
        sandbox: bool = True,
        most_seconds: float = 600.0,
        announce: Callable[[str], None] = lambda text: None,
        installing: Progress = silent,
    ) -> None:
        self.files = Confinement(roots)
        self.most_seconds = most_seconds
        self.goals = GoalStore()
        self._lean = lean
        self._sandbox = sandbox
        self._announce = announce
        self._installing = installing
        self._lock = threading.Lock()
        self._leans: dict[Path | None, WarmLean] = {}
        self._indexing = threading.Lock()
        self._index: tuple[Path, int, PremiseIndex] | None = None

    # -- Lean -----------------------------------------------------------------------------

    def lean_for(self, start: Path) -> WarmLean:
        """Return the Lean for a path: one for each Lake project, and one for all other paths."""
        lake = self.lake_root(start)
        if lake is None and self._lean == "native" and (outside := find_root(start)) is not None:
            raise UsageError(
                f"the Lake project {outside} is outside the roots; start the server with it as a "
                "--root"
            )
        return self._warm_lean(lake)

    def lean_without_project(self) -> WarmLean:
        """Return the Lean for texts that need no project."""
        return self._warm_lean(None)

    def _warm_lean(self, lake: Path | None) -> WarmLean:
        with self._lock:
            lean = self._leans.get(lake)
            if lean is None:
                lean = self._leans[lake] = WarmLean(lambda: self._open_lean(lake))
            others = [each for each in self._leans.values() if each is not lean]
            for unused in sorted(others, key=lambda each: -each.used)[MAX_WARM_LEANS - 1 :]:
                unused.close_if_idle()
            return lean

    def lake_root(self, start: Path) -> Path | None:
        """Return the Lake project around a path, or None if it is outside the roots."""
        found = find_root(start)
        return found if found is not None and self.files.root_of(found) is not None else None

    def _open_lean(self, lake: Path | None) -> tuple[Host, Project | None]:
        choice = self._choice(lake)
        self._announce(f"Lean backend: {choice}")
        host = open_host(choice, self._installing)
        if choice.backend != "wasm" or lake is None:
            return host, None
        for name in (TOML, LEAN, MANIFEST):
            if not self._inside(lake / name):
                raise UsageError(f"{name} of {lake.name} is a link that leads out of the roots")
        project = open_project(
            lake, self._announce, read=self.files.read_or_none, allowed=self._inside
        )
        for package in project.workspace.packages if project is not None else ():
            for target in package.targets:
                if not self._inside(target.sources):
                    raise UsageError(
                        f"the project {lake.name} has sources outside the roots, in "
                        f"{target.sources}; start the server with that as a --root too"
                    )
        return host, project

    def _inside(self, path: Path) -> bool:
        return self.files.root_of(path.resolve()) is not None

    def _choice(self, lake: Path | None) -> Choice:
        if lake is not None:
            return choose(self._lean, lake, sandbox=self._sandbox)
        if self._lean == "native":
            return choose("native", Path("/"), sandbox=self._sandbox)
        return Choice("wasm", "outside of any Lake project of the roots")

    def tidy(self, idle: float = IDLE_SECONDS) -> None:
        """End the processes that were idle for this many seconds."""
        with self._lock:
            leans = list(self._leans.values())
        for lean in leans:
            if time.monotonic() - lean.used > idle:
                lean.close_if_idle()

    def close(self) -> None:
        """End all Lean processes."""
        with self._lock:
            leans = list(self._leans.values())
            self._leans.clear()
        for lean in leans:
            lean.close()

    @contextlib.contextmanager
    def premises(self, imports: Sequence[str], call: Call) -> Iterator[PremiseIndex]:
        """Yield the premise index of the bundled Lean for some imports; it is built if missing.

        The index stays open until it is rebuilt or another index is needed. Only one call uses it
        at a time, so that no call closes it for another.
        """
        names = [module_name(name) for name in imports]
        path = default_path(names)
        with call.hold(self._indexing, "the premise index"):
            stamp = path.stat().st_mtime_ns if path.is_file() else 0
            if self._index is None or self._index[:2] != (path, stamp):
                ensure_index(
                    self._library_lean,
                    names,
                    progress=lambda what, done, of: call.progress(done, of, what),
                )
                stamp = path.stat().st_mtime_ns
                opened = PremiseIndex.open(path)
                if self._index is not None:
                    self._index[2].close()
                self._index = (path, stamp, opened)
            yield self._index[2]

    def _library_lean(self) -> LeanProcesses:
        bundled = Choice("wasm", "for the premise index")
        return LeanProcesses(open_host(bundled, self._installing))

    # -- runs -----------------------------------------------------------------------------

    @cached_property
    def runs(self) -> Roots:
        return Roots(self.files.roots)

    @cached_property
    def trees(self) -> TreeLibrary:
        return TreeLibrary(most_bytes=64 << 20)

    @cached_property
    def proofs(self) -> ProofLibrary:
        return ProofLibrary(most_bytes=32 << 20)
