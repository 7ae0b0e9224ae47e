"""How many git processes a run starts: each costs more than what it is asked, in every evaluation
of a night and at every death in tests/faults. Git itself counts them, with those that it starts."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.toy import ToyRepository

SMALL = ("--max-depth", "1", "--sweep-config-limit", "8", "--until-done")
EVALUATED = Counter(
    {
        "worktree": 1,
        "apply": 1,
        "add": 1,
        "diff": 1,
        "commit": 1,
        "reset": 3,  # for the agent, for the tests, for the sweep
    }
)


@dataclass(frozen=True)
class Started:
    ours: Counter[str]
    """Git commands that treewright runs."""
    processes: int
    """With those that git starts for them, which are fewer in newer versions."""


Counted = Callable[..., Started]


@pytest.fixture
def counted(tmp_path: Path, treewright) -> Counted:
    """Runs `treewright tree` and returns the git commands that it took."""
    places = iter(tmp_path / f"trace {number}" for number in range(100))

    def run(toy: ToyRepository, *flags: str) -> Started:
        place = next(places)
        place.mkdir()
        env = {**os.environ, "GIT_TRACE2_EVENT": str(place)}
        asked = ("tree", "--repo", str(toy.path), "--tree-run-id", "run", *flags)
        done = treewright(*asked, env=env)
        assert done.returncode == 0, done.stderr
        named = [_command(path) for path in place.iterdir()]
        return Started(Counter(name for name, is_ours in named if is_ours), len(named))

    return run


def _command(trace: Path) -> tuple[str, bool]:
    """Its name, and whether nobody but us has started it."""
    events = [json.loads(line) for line in trace.read_text().splitlines()]
    name = next(event["name"] for event in events if event["event"] == "cmd_name")
    return name, "/" not in events[0]["sid"]


def test_an_evaluation(counted: Counted, tmp_path: Path) -> None:
    few, more = (
        counted(ToyRepository.create(tmp_path / ideas), *SMALL, "--ideas-per-node", ideas)
        for ideas in ("2", "4")
    )
    assert more.ours - few.ours == EVALUATED + EVALUATED
    assert few.ours - more.ours == Counter()
    assert more.processes - few.processes <= 2 * 9


def test_starting_continuing_and_validating(counted: Counted, tmp_path: Path) -> None:
    toy = ToyRepository.create(tmp_path / "toy")
    whole = counted(toy, *SMALL, "--ideas-per-node", "1")
    promoted = Counter({"worktree": 1, "branch": 1, "hash-object": 1, "update-ref": 1})
    measured = Counter({"ls-tree": 1, "config": 1})  # once a process, however much is measured
    assert whole.ours - EVALUATED - promoted - measured == Counter(
        {
            "rev-parse": 1,  # where is the repository
            "check-ignore": 1,
            "status": 1,
            "rev-list": 2,  # the root, and whose the baseline is
            "worktree": 2,  # for the preflight, for the root's node
            "reset": 1,
            "branch": 1,
            "hash-object": 1,
            "update-ref": 1,
        }
    )
    assert whole.processes <= 33
    assert counted(toy, *SMALL).ours == Counter({"rev-parse": 1})
    checked = counted(toy, "--validate-only").ours
    assert checked == Counter({"rev-parse": 1, "cat-file": 1, "diff-tree": 1, "status": 2})
