"""Proof runs of any size: the real engine in the synthetic world, with goals as Lean prints them.

Goals and tactics of that world are numbers. The page shows text, so each number gets a fixed
statement, and each tactic a fixed name and time."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import msgspec

from tests.dashboard.proof_runs import ProofRun, view
from tests.proving.synthetic import Tactics, World
from treewright.proving.centralized import CentralizedEngine
from treewright.proving.expansion import Expander
from treewright.proving.search import Stamp, iteration_line
from treewright.search.andor.graph import Status
from treewright.search.andor.policies.mcts import Mcts

TACTICS = (
    "simp [Nat.add_comm, List.length_append]",
    "induction xs with | nil => ?_ | cons x xs ih",
    "omega",
    "rw [Nat.mul_comm]",
    "exact?",
    "constructor",
)
MILLISECONDS = (18, 9, 4, 3, 310, 2)
STATEMENTS = (
    "(xs ++ ys).reverse.length + {0} = ys.length + xs.length + {0}",
    "∃ c, {0} + b = a + c ∧ c ≤ {0} + b",
    "∀ n : Nat, n * (n + {0}) % 2 = n * {0} % 2",
    "a ≤ {0}",
    "∀ (p : Nat → Prop), (∀ n, p n → p (n + {0})) → p 0 → ∀ k, p (k * {0}) ∧ (p (k * {0}) → p k)",
)


class Late(World):
    """A world in which no goal can be closed until the test allows it."""

    closes = False

    def outcome(self, key: str, tactic: str) -> tuple[str, tuple[str, ...]]:
        kind, keys = super().outcome(key, tactic)
        if not self.closes:
            return ("error", ()) if kind == "closed" else (kind, keys)
        return ("closed", ()) if self.draw(key, tactic, "late") < 0.7 else (kind, keys)


def grown(
    project: Path, goals: int, *, proved: bool, run_id: str = "grown", agents: int = 3
) -> ProofRun:
    """Grow the search to a number of goals, then end it with or without a proof."""
    run = ProofRun(project, run_id)
    (run.path / "trace.jsonl").unlink()
    world = Late(1, size=40 * goals, closing=0.1, failing=0.5)
    expander = Expander(world, Tactics(), lambda of: 0.2 + 0.01 * (int(of[0].target) % 70), batch=2)
    engine = CentralizedEngine(expander, Mcts())
    root = worded(msgspec.to_builtins(expander.root))
    run.write("goal", goal=0, name="grown", statement="theorem grown : …", root=root)
    draw = Random(goals)
    while not engine.finished and (proved or len(engine.tree.nodes) < goals):
        world.closes = len(engine.tree.nodes) >= goals
        turn = engine.step()
        turn.agent, turn.algotype = draw.randrange(agents), "uct"
        run.iterations += 1
        stamp = Stamp(1, "", run.iterations, 0, elapsed=round(0.1 * run.iterations, 3))
        line = msgspec.to_builtins(iteration_line(turn, engine.tree, expander.attempts, stamp))
        line["new"] = [worded(one) for one in line["new"]]
        for attempt in line["attempts"]:
            which = int(attempt["tactic"][1:])
            attempt["tactic"] = TACTICS[which]
            attempt["ms"] = round(MILLISECONDS[which] * (0.5 + draw.random()), 2)
        run.write(line.pop("type"), **{k: v for k, v in line.items() if k not in ("epoch", "at")})
    assert (engine.tree.root.status is Status.SOLVED) == proved
    status, stop = ("proved", "solved") if proved else ("unproved", "simulations")
    run.write(
        "verdict", goal=0, status=status, stop=stop, detail="", iterations=run.iterations,
        axioms=[], proof="exact grown" if proved else "",
    )  # fmt: skip
    run.end(int(proved), 1)
    return run


def worded(node: dict[str, Any]) -> dict[str, Any]:
    """Return a node of the synthetic world with a readable goal."""
    number = int(node["goals"][0]["target"])
    statement = STATEMENTS[number % len(STATEMENTS)].format(number)
    given = [("xs ys", "List Nat"), ("h", f"a ≤ {number}")][: 1 + number % 2]
    return {**node, "goals": [view(statement, *given)]}
