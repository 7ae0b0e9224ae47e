"""Commands that arrive while ideas are generated do not change the choice that waits for the
ideas."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.toy import ToyRepository
from tests.tree.steady.running import DRY, steady
from treewright.tree.ideas.expansion import Expander
from treewright.tree.records.steering import applied, new_command
from treewright.tree.run import command_files
from treewright.tree.run.command_files import CommandFile
from treewright.tree.run.coordinator import Coordinator
from treewright.tree.validation import validate

COMMANDS: dict[str, list[tuple[Any, dict[str, Any]]]] = {
    "a pause": [("pause", {}), ("resume", {})],
    "a budget": [("budget", {"settings": {"max_total_idea_evals": 15}})],
    "less budget": [("budget", {"settings": {"max_total_idea_evals": 9}})],
    "a deeper tree": [("extend", {"settings": {"max_depth": 4}})],
    "a boost": [("boost", {"node_id": "n0000"})],
}


class Slow:
    """An idea source that returns only after the search has polled twice for commands, which are
    submitted when the source is called."""

    def __init__(self, patch: pytest.MonkeyPatch, run_dir: Path, what: str, at: int) -> None:
        self._expand, self._steer = Expander.expand, Coordinator.apply_commands
        self._run_dir, self._what, self._at = run_dir, what, at
        self._asked = 0
        self._looks = -1
        self._enough = threading.Event()
        slow = self

        def expand(expander: Expander, *args: Any, **more: Any) -> Any:
            return slow.expand(expander, *args, **more)

        def steer(coordinator: Coordinator) -> None:
            slow.steer(coordinator)

        patch.setattr(Expander, "expand", expand)
        patch.setattr(Coordinator, "apply_commands", steer)

    def expand(self, expander: Expander, *args: Any, **more: Any) -> Any:
        self._asked += 1
        if self._asked == self._at:
            for action, fields in COMMANDS[self._what]:
                command_files.submit(self._run_dir, CommandFile(new_command(action, **fields)))
            self._looks = 0
            assert self._enough.wait(60)
        return self._expand(expander, *args, **more)

    def steer(self, coordinator: Coordinator) -> None:
        self._steer(coordinator)
        if self._looks >= 0:
            self._looks += 1
            if self._looks == 2:
                self._enough.set()


@pytest.mark.parametrize("order", ["fixed", "live"])
@pytest.mark.parametrize("at", [2, 3, 4])
@pytest.mark.parametrize("what", COMMANDS)
def test_a_command_during_generation_is_applied_and_the_run_stays_valid(
    toy: ToyRepository, monkeypatch: pytest.MonkeyPatch, what: str, at: int, order: str
) -> None:
    """Regression: after a pause the tree was rebuilt without the results that the waiting choice
    had known, and the search ended with a ValueError."""
    Slow(monkeypatch, toy.run_dir("run"), what, at)
    shape = replace(DRY, max_total_idea_evals=12)
    manifest = steady(toy.path, "run", "best-first", shape, order=order)
    assert [r.command.action for r in applied(manifest.steering)] == [a for a, _ in COMMANDS[what]]
    assert len(manifest.evaluations) == manifest.max_total_idea_evals
    assert validate(toy.run_dir("run"), toy.path) == []


def test_a_budget_reduced_during_a_pause_holds_after_the_pause(
    toy: ToyRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: the pending choice waited for the end of the pause and then exceeded the reduced
    budget, so the choice was refused."""
    told = [("pause", {}), ("budget", {"settings": {"max_total_idea_evals": 6}}), ("resume", {})]
    monkeypatch.setitem(COMMANDS, "in a pause", told)
    Slow(monkeypatch, toy.run_dir("run"), "in a pause", 3)
    shape = replace(DRY, max_total_idea_evals=12, ideas_per_node=6)
    manifest = steady(toy.path, "run", "mcts", shape)
    actions = [r.command.action for r in applied(manifest.steering)]
    assert sorted(actions) == ["budget", "pause", "resume"]
    assert len(manifest.evaluations) == manifest.max_total_idea_evals == 6
    assert validate(toy.run_dir("run"), toy.path) == []
