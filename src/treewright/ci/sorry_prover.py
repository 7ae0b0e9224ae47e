"""Try to prove the new `sorry`s of a change, with one proof run for each declaration.

The declarations of a file are proved one after the other in one text, so that the patch of the file
has all proofs. The files themselves are not changed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from treewright.ci.findings import Attempt, Findings, OpenGoal, goal_text
from treewright.kernel.errors import TreewrightError
from treewright.lean.processes import LeanProcesses
from treewright.lean.sorries import patch_of
from treewright.proving.api import ProofService, Sources
from treewright.proving.phases import Observer
from treewright.proving.records import GoalResult
from treewright.proving.settings import FileTarget, Settings

_NAMELESS = "its declaration has no name, so a proof could not be checked"
_NO_TIME = "the budget was used up, or the search was stopped"
_NOT_FOUND = "Lean did not find it again before the search"


@dataclass(slots=True)
class SorryProver:
    """Tries the new sorries for `budget` seconds in all. The runs are stored below `here`."""

    lean: LeanProcesses
    settings: Settings
    budget: float
    here: Path
    sources: Sources
    observer: Observer = field(default_factory=Observer)
    stop_asked: Callable[[], bool] = lambda: False
    _deadline: float = field(default=0.0, init=False)
    _waiting: int = field(default=0, init=False)  # goals that share the rest of the budget
    _service: ProofService = field(init=False)

    def prove(self, findings: Findings, repository: Path) -> tuple[Findings, str]:
        """Return the findings with all results, and the proofs as a patch of the repository."""
        self._deadline = time.monotonic() + self.budget
        self._waiting = len(findings.new)
        by_file: dict[str, list[Attempt]] = {}
        for attempt in findings.new:
            by_file.setdefault(attempt.sorry.file, []).append(attempt)
        tried: list[Attempt] = []
        patch = ""
        self._service = ProofService(
            self.lean, self.here, self.sources, self.observer, self._is_over
        )
        for name, attempts in by_file.items():
            new = [attempt.sorry for attempt in attempts]
            before = (repository / name).read_bytes().decode()
            after, came = self._prove_file(repository / name, before, new)
            tried += came
            patch += patch_of(name, before, after)
        return msgspec.structs.replace(findings, new=tuple(tried)), patch

    def _prove_file(
        self, path: Path, text: str, new: Sequence[OpenGoal]
    ) -> tuple[str, list[Attempt]]:
        by_declaration: dict[str, list[OpenGoal]] = {}
        for goal in new:
            by_declaration.setdefault(goal.declaration, []).append(goal)
        tried: list[Attempt] = []
        for declaration, goals in by_declaration.items():
            if not declaration or declaration.endswith("_example"):
                tried += [Attempt(goal, detail=_NAMELESS) for goal in goals]
            elif self._is_over():
                tried += [Attempt(goal, detail=_NO_TIME) for goal in goals]
            else:
                target = FileTarget(str(path), text, declaration)
                try:
                    text, came = self._prove_declaration(target, goals)
                except TreewrightError as error:
                    came = [Attempt(goal, detail=str(error)) for goal in goals]
                tried += came
            self._waiting -= len(goals)
        return text, tried

    def _prove_declaration(
        self, target: FileTarget, goals: Sequence[OpenGoal]
    ) -> tuple[str, list[Attempt]]:
        """Return the text with the new proofs, and the result of each goal."""
        directory, specs = self._service.create(target, self._settings())
        result = self._service.resume(directory)
        by_number = {goal.goal: goal for goal in result.goals}
        came: dict[tuple[str, str], list[GoalResult | None]] = {}
        for spec in specs:
            if spec.sorry is not None:
                key = (spec.sorry.declaration, goal_text(spec.sorry))
                came.setdefault(key, []).append(by_number.get(spec.number))
        text = target.source
        if result.file is not None and result.proved == result.total:
            text = Path(result.file).read_bytes().decode()  # a text with proofs only
        attempts: list[Attempt] = []
        # Of equal goals, the last ones are the new ones: see `findings.compare`.
        for goal in reversed(goals):
            results = came.get((goal.declaration, goal.goal))
            if not results:
                attempts.append(Attempt(goal, detail=_NOT_FOUND))
            elif (one := results.pop()) is None:
                attempts.append(Attempt(goal, detail=_NO_TIME))
            else:
                attempts.append(Attempt(goal, one.status, one.detail, one.proof))
        return text, attempts[::-1]

    def _settings(self) -> Settings:
        """Return the settings with a time limit: the goal's share of the remaining budget."""
        share = max(self._deadline - time.monotonic(), 0.0) / max(self._waiting, 1)
        asked = self.settings.time_limit
        limit = share if asked is None else min(asked, share)
        return msgspec.structs.replace(self.settings, time_limit=limit)

    def _is_over(self) -> bool:
        return self.stop_asked() or time.monotonic() > self._deadline
