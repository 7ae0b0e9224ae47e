"""Commands that come while ideas are thought of: the choice that waits for them stays as it is."""

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
from treewright.tree.run import commands
from treewright.tree.run.commands import Letter
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
    """Ideas that arrive once the loop has looked twice for commands; the commands are there since
    the source was asked."""

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
                commands.submit(self._run_dir, Letter(new_command(action, **fields)))
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
def test_what_is_told_while_ideas_are_thought_of(
    toy: ToyRepository, monkeypatch: pytest.MonkeyPatch, what: str, at: int, order: str
) -> None:
    """A pause rebuilt the tree from the records, without the outcomes that the waiting choice had
    known: the search ended with a ValueError."""
    Slow(monkeypatch, toy.run_dir("run"), what, at)
    shape = replace(DRY, max_total_idea_evals=12)
    manifest = steady(toy.path, "run", "best-first", shape, order=order)
    assert [r.command.action for r in applied(manifest.steering)] == [a for a, _ in COMMANDS[what]]
    assert len(manifest.evaluations) == manifest.max_total_idea_evals
    assert validate(toy.run_dir("run"), toy.path) == []


def test_less_budget_in_a_pause_holds_when_the_run_goes_on(
    toy: ToyRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command waits for the ideas of a choice that waits for the end of the pause: the records
    in between were beyond that choice, so it was refused."""
    told = [("pause", {}), ("budget", {"settings": {"max_total_idea_evals": 6}}), ("resume", {})]
    monkeypatch.setitem(COMMANDS, "in a pause", told)
    Slow(monkeypatch, toy.run_dir("run"), "in a pause", 3)
    shape = replace(DRY, max_total_idea_evals=12, ideas_per_node=6)
    manifest = steady(toy.path, "run", "mcts", shape)
    actions = [r.command.action for r in applied(manifest.steering)]
    assert sorted(actions) == ["budget", "pause", "resume"]
    assert len(manifest.evaluations) == manifest.max_total_idea_evals == 6
    assert validate(toy.run_dir("run"), toy.path) == []
